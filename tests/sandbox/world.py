"""What is outside a sandbox and must stay unchanged: files, listeners, a process, the environment."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from vpo.sandbox.isolation import INSIDE

SECRET = "the parent's secret 7261"
# It prints the address of a secret, lets any process read its memory, and lives until its standard input is closed.
NEIGHBOUR = f"""
import ctypes, sys
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
secret = ctypes.create_string_buffer({SECRET!r}.encode())
print(ctypes.addressof(secret), flush=True)
sys.stdin.read()
"""


class World:
    """A folder with files, sockets that listen on this machine, and another process where an attack needs one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = folder / "secret.txt"
        self.secret.write_text(SECRET)
        self.grader = folder / "grader.py"
        self.grader.write_text("expected = 5\n")
        os.utime(self.secret, (1e9, 1e9))
        self.inherited = os.open(self.secret, os.O_RDONLY)
        os.set_inheritable(self.inherited, True)
        self.name = f"vpo-{os.getpid()}-{folder.name}"
        self.sockets = [
            self._listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            self._listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            self._listening(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "s")),
            self._listening(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.name}"),
            self._listening(socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "d")),
            self._listening(socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.name}-d"),
        ]
        self.neighbour: subprocess.Popen[str] | None = None
        self.before = self.files()

    def _listening(self, family: int, kind: int, address: object) -> socket.socket:
        made = socket.socket(family, kind)
        made.bind(address)  # type: ignore[arg-type]
        made.setblocking(False)
        if kind == socket.SOCK_STREAM:
            made.listen()
        return made

    def fill_in(self, source: str, *, long: float) -> str:
        """A program with the paths, ports and ids of this world in it.

        Args:
            source: with words such as @SECRET@ in it.
            long: seconds that an attack on time takes.
        """
        words = {
            "@FOLDER@": str(self.folder),
            "@SECRET@": str(self.secret),
            "@GRADER@": str(self.grader),
            "@TCP@": str(self.sockets[0].getsockname()[1]),
            "@UDP@": str(self.sockets[1].getsockname()[1]),
            "@NAME@": self.name,
            "@LONG@": str(long),
        }
        if "@NEIGHBOUR@" in source:
            self.neighbour = subprocess.Popen(
                [sys.executable, "-S", "-c", NEIGHBOUR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert self.neighbour.stdout is not None
            words |= {"@NEIGHBOUR@": str(self.neighbour.pid), "@ADDRESS@": self.neighbour.stdout.readline().strip()}
        for word, value in words.items():
            source = source.replace(word, value)
        return source

    def heard(self) -> bool:
        """Whether a listener was called."""
        for each in self.sockets:
            try:
                (each.accept()[0].close if each.type == socket.SOCK_STREAM else lambda each=each: each.recv(99))()
                return True
            except BlockingIOError:
                pass
        return False

    def files(self) -> dict[str, tuple[object, ...]]:
        """Path → attributes and content of the files that a program may want to change."""
        paths = [*self.folder.rglob("*"), *INSIDE.glob("*.py")]
        facts = {}
        for path in sorted(paths):
            stat = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            facts[str(path)] = (stat.st_mode, stat.st_uid, stat.st_nlink, stat.st_mtime, content)
        return facts

    def changed(self) -> bool:
        """Whether a file was added, removed or changed."""
        return self.files() != self.before or bool(self._elsewhere())

    def unharmed(self) -> bool:
        """Whether the other process still runs."""
        return self.neighbour is None or self.neighbour.poll() is None

    def close(self) -> None:
        """Remove everything."""
        for each in self.sockets:
            each.close()
        os.close(self.inherited)
        if self.neighbour is not None:
            self.neighbour.kill()
            self.neighbour.communicate()
        for path in self._elsewhere():
            path.unlink()

    def _elsewhere(self) -> list[Path]:
        return [path for folder in ("/dev/shm", "/var/tmp") if (path := Path(folder, self.name)).exists()]


def processes_with(token: str, seconds: float = 30.0) -> list[int]:
    """Processes whose environment holds a token, after waiting for them to end: the kernel takes a while to.

    The one that all others are forked from stays, and does not count.
    """
    deadline = time.monotonic() + seconds
    while (processes := _with(token.encode())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return processes


def _with(token: bytes) -> list[int]:
    processes = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if token in (path / "environ").read_bytes() and (path / "comm").read_text().strip() != "vpo-zygote":
                processes.append(int(path.name))
        except OSError:  # it has ended, or belongs to another user
            pass
    return processes

"""The judge's side of `vpo.sandbox.inside.zygote`: a started interpreter, from which sandboxed processes are forked."""

import select
import socket
import subprocess

from vpo.sandbox.isolation import ENVIRONMENT, INSIDE, OPTIONS, PYTHON


class Zygote:
    """A process without any program, from which those of programs are forked. All judges of a server share it."""

    def __init__(self) -> None:
        """Start it, with the environment that programs have."""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [PYTHON, *OPTIONS, str(INSIDE), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def fork(self, files: list[int]) -> None:
        """Have a process forked for a program; see `supervise` of the other side for the files."""
        socket.send_fds(self.control, [b"x"], files)

    @property
    def alive(self) -> bool:
        """Whether it can still fork."""
        poll = select.poll()
        poll.register(self.control, 0)
        return not poll.poll(0)

    def close(self) -> None:
        """End it. Processes that were forked from it go on."""
        self.control.close()
        self.process.kill()  # it would wait on, since forks of this process may hold the socket too
        self.process.wait()

    def __enter__(self) -> "Zygote":
        """Nothing more to start."""
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        self.close()

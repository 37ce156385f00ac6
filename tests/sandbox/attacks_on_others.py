"""Attacks on what is outside: files, the network, other processes, or more of the machine than the limits allow."""

from tests.sandbox.attacks import DONE, Attack, calls, changes_files, harms
from tests.sandbox.plain import Plain
from tests.sandbox.world import SECRET, World

FORBIDDEN = ("wrong answer", "exception", "forbidden")
CALL = "def answer(_):\n    {}\n    return 'done'\n"


def printed_much(plain: Plain, world: World) -> bool:
    """Whether a grader kept all that was printed in memory."""
    return len(plain.output) > 2_000_000


def _reads(name: str, tries: str, body: str) -> Attack:
    return Attack(name, tries, f"import os\ndef answer(_):\n    {body}\n", SECRET, reasons=FORBIDDEN)


def _changes(name: str, tries: str, body: str) -> Attack:
    source = f"import os\ndef answer(_):\n    {body}\n    return 'done'\n"
    return Attack(name, tries, source, DONE, succeeded=changes_files, reasons=FORBIDDEN)


def _does(name: str, tries: str, imports: str, *lines: str, **more: object) -> Attack:
    source = f"import {imports}\n" + CALL.format("\n    ".join(lines))
    return Attack(name, tries, source, DONE, reasons=FORBIDDEN, **more)  # type: ignore[arg-type]


READING = [
    _reads("parents_file", "the parent's files", "return open('@SECRET@').read()"),
    _reads(
        "openat",
        "the parent's files through a folder",
        "return os.read(os.open('secret.txt', 0, dir_fd=os.open('@FOLDER@', 0)), 99).decode()",
    ),
    _reads("relative_path", "the parent's files by a way round", "return open('/usr/../@SECRET@').read()"),
    _reads(
        "symlink_to_read",
        "the parent's files through a link of its own",
        "os.symlink('@SECRET@', os.environ['TMPDIR'] + '/l'); return open(os.environ['TMPDIR'] + '/l').read()",
    ),
    _reads("environment", "the parent's environment", "return os.environ['VPO_SECRET']"),
    _reads(
        "proc_environment",
        "the parent's environment through /proc",
        "return dict(w.split('=', 1) for w in open('/proc/@NEIGHBOUR@/environ').read().split(chr(0)) if '=' in w)"
        "['VPO_SECRET']",
    ),
    _reads(
        "inherited_descriptors",
        "open files of the parent's",
        "return [t for n in range(3, 64) if (t := seen(n))][0]\ndef seen(n):\n    try: t = os.pread(n, 99, 0).decode()"
        "\n    except OSError: return ''\n    return t if 'secret' in t else ''",
    ),
    _reads(
        "others_memory",
        "another process's memory through /proc",
        "f = open('/proc/@NEIGHBOUR@/mem', 'rb', 0); f.seek(@ADDRESS@); return f.read(24).decode()",
    ),
]
READING += [
    Attack(
        "others_memory_by_call",
        "another process's memory by a system call",
        "import ctypes\nclass Part(ctypes.Structure):\n    _fields_= [('at', ctypes.c_void_p),('n', ctypes.c_size_t)]\n"
        "def answer(_):\n    copy = ctypes.create_string_buffer(24)\n    here = Part(ctypes.addressof(copy), 24)\n"
        "    there = Part(@ADDRESS@, 24)\n    ctypes.CDLL(None).process_vm_readv(@NEIGHBOUR@, ctypes.byref(here),"
        " ctypes.c_ulong(1), ctypes.byref(there), ctypes.c_ulong(1), ctypes.c_ulong(0))\n"
        "    return copy.value.decode()\n",
        SECRET,
    ),
    _does("list_folder", "names of the parent's files", "os", "assert 'secret.txt' in os.listdir('@FOLDER@')"),
    _does("list_processes", "what runs on the machine", "os", "assert '@NEIGHBOUR@' in os.listdir('/proc')"),
    _does("system_users", "users of the machine", "os", "assert 'root' in open('/etc/passwd').read()"),
    _does("proc_maps", "where its own memory lies", "os", "assert 'python' in open('/proc/self/maps').read()"),
]
WRITING = [
    _changes("new_file", "a file outside", "open('@FOLDER@/new', 'w').write('x')"),
    _changes("append", "a longer file of the parent's", "open('@SECRET@', 'a').write('x')"),
    _changes(
        "graders_code",
        "a change of the grader's code for the next program",
        "[open(p, 'a').write('x') for p in ('@GRADER@', '/inside/values.py') if p[1] != 'i' or os.path.exists(p)]",
    ),
    _changes(
        "module_for_next", "a module that the next program imports", "open('json.py', 'w').write('x = 1')\n    1 / 0"
    ),
    _changes("hard_link", "another name of a file", "os.link('@SECRET@', '@FOLDER@/link')"),
    _changes("symlink", "a link outside", "os.symlink('/etc', '@FOLDER@/link')"),
    _changes("rename", "another name for a file", "os.rename('@SECRET@', '@FOLDER@/gone')"),
    _changes("unlink", "an end of a file", "os.unlink('@SECRET@')"),
    _changes("mkdir", "a folder outside", "os.mkdir('@FOLDER@/new')"),
    _changes("chmod", "other rights on a file", "os.chmod('@SECRET@', 0o777)"),
    _changes("utime", "another date of a file", "os.utime('@SECRET@', (5, 5))"),
    _changes("truncate", "an empty file", "os.truncate('@SECRET@', 0)"),
    _changes("fifo", "a pipe outside", "os.mkfifo('@FOLDER@/pipe')"),
    _changes("shared_memory", "a file in shared memory", "open('/dev/shm/@NAME@', 'w').write('x')"),
    _changes("other_tmp", "a file in another temporary folder", "open('/var/tmp/@NAME@', 'w').write('x')"),
    _changes("unix_server", "a socket outside", "import socket; socket.socket(1).bind('@FOLDER@/mine')"),
    _changes(
        "daemon",
        "a process that outlives it and writes later",
        # The pipe is at its end once its parent has ended. The runner's output ends with the last process that has it.
        "reading, writing = os.pipe()\n    if os.fork() == 0:\n        os.setsid()\n        os.close(writing)\n"
        "        os.read(reading, 1)\n        open('@FOLDER@/late', 'w').close()\n        os._exit(0)",
    ),
    Attack(
        "chown",
        "another owner of a file",
        "import os\ndef answer(_):\n    os.chown('@SECRET@', 1, 1)\n    return 'done'\n",
        DONE,
        succeeded=changes_files,
        privileged=True,
    ),
]
TO = "('127.0.0.1', @TCP@)"
NETWORK = [
    _does("tcp", "a TCP connection", "socket", f"socket.create_connection({TO}).close()", succeeded=calls),
    _does("udp", "a UDP packet", "socket", "socket.socket(2, 2).sendto(b'x', ('127.0.0.1', @UDP@))", succeeded=calls),
    _does("unix", "a unix socket", "socket", "socket.socket(1, 1).connect('@FOLDER@/s')", succeeded=calls),
    _does(
        "abstract",
        "an abstract unix socket",
        "socket",
        "socket.socket(1, 1).connect(chr(0) + '@NAME@')",
        succeeded=calls,
    ),
    _does(
        "asyncio",
        "a connection by asyncio",
        "asyncio",
        "asyncio.run(asyncio.open_connection('127.0.0.1', @TCP@))",
        succeeded=calls,
    ),
    _does(
        "urllib",
        "a request by urllib",
        "urllib.request",
        "def body(): yield b'x'; raise EOFError",  # sent, and no reply is waited for, since none comes
        "try: urllib.request.urlopen('http://127.0.0.1:@TCP@', body())",
        "except EOFError: pass",
        succeeded=calls,
    ),
    _does("netlink", "a netlink socket", "socket", "socket.socket(16, 3, 0).bind((0, 0))"),
    _does("raw", "a raw socket", "socket", "socket.socket(2, 3, 1)", privileged=True),
    _does("packet", "packets of a device", "socket", "socket.socket(17, 3, 0)", privileged=True),
    _does(
        "datagram_from_a_pair",
        "a message to another socket from a pair of sockets",
        "socket",
        "socket.socketpair(1, 2)[0].sendto(b'x', '@FOLDER@/d')",
        succeeded=calls,
    ),
    _does(
        "abstract_datagram_from_a_pair",
        "a message to an abstract socket from a pair of sockets",
        "socket",
        "socket.socketpair(1, 2)[0].sendto(b'x', chr(0) + '@NAME@-d')",
        succeeded=calls,
    ),
    _does("server", "a server of its own", "socket", "socket.create_server(('127.0.0.1', 0))"),
    _does("ipv6", "an IPv6 socket", "socket", "socket.socket(10, 1)", refused=True),
]
PROCESSES = [
    _does("file_lock", "a lock that other programs see", "fcntl, os", "fcntl.lockf(open(os.__file__), fcntl.LOCK_SH)"),
    _does(
        "seen_lock",
        "to see the lock of another program",
        "fcntl, os, struct",
        "fcntl.fcntl(open(os.__file__), fcntl.F_GETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))",
    ),
    _does(
        "lock_of_a_description",
        "a lock that belongs to an open file",
        "fcntl, os, struct",
        "fcntl.fcntl(open(os.__file__), 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0))",
    ),
    _does(
        "fork_bomb",
        "many processes",
        "os",
        "for _ in range(6):",
        "    if os.fork() == 0: os._exit(0)",
    ),
    _does("forkpty", "a process with a terminal", "os", "if os.forkpty()[0] == 0: os._exit(0)"),
    _does("posix_spawn", "a process by posix_spawn", "os", "os.posix_spawn('/bin/true', ['true'], {})"),
    _does("subprocess", "a process by subprocess", "subprocess", "subprocess.run(['true'], check=True)"),
    _does("system", "a process by os.system", "os", "assert os.system('true') == 0"),
    _does(
        "multiprocessing",
        "a process by multiprocessing",
        "multiprocessing",
        "each = multiprocessing.get_context('fork').Process(target=int)",
        "each.start(); each.join()",
    ),
    _does("kill_neighbour", "to end another process", "os", "os.kill(@NEIGHBOUR@, 15)", succeeded=harms),
    _does("signal_parent", "a signal to the parent", "os", "os.kill(os.getppid(), 0)"),
    _does("renice_neighbour", "to slow another process", "os", "os.setpriority(os.PRIO_PROCESS, @NEIGHBOUR@, 19)"),
    Attack(
        "machine_code",
        "a system call from machine code of its own",
        "import ctypes, mmap\ncode = bytes.fromhex('b829000000bf01000000be0100000031d20f05c3')\n"
        "def answer(_):\n    page = mmap.mmap(-1, 4096, prot=7)\n    page.write(code)\n"
        "    at = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "    return 'done' if ctypes.CFUNCTYPE(ctypes.c_int)(at)() >= 0 else 'refused'\n",
        DONE,
        machine="x86_64",
    ),
]
LARGE = [
    Attack(
        "memory_bomb",
        "more memory than it may have",
        # Address space that is never written to, so that it takes no memory of the machine.
        "def answer(_):\n    x = bytes(200 << 20)\n    return 'done'\n",
        DONE,
        reasons=("memory",),
        limits={"memory_mb": 128},
    ),
    Attack(
        "many_threads",
        "more memory by threads",
        "import threading\ndef answer(_):\n    threading.stack_size(64 << 20)\n    e = threading.Event()\n"
        "    for _ in range(8): threading.Thread(target=e.wait, daemon=True).start()\n    return 'done'\n",
        DONE,
        reasons=("exception", "memory"),
        limits={"memory_mb": 256},
    ),
    Attack(
        "disk_fill",
        "more disk than it may have",
        "import tempfile\ndef answer(_):\n    with open(tempfile.gettempdir() + '/big', 'wb') as f:\n"
        "        f.write(bytes(5 << 20))\n    return 'done'\n",
        DONE,
        succeeded=changes_files,
        limits={"disk_mb": 1},
    ),
    Attack(
        "sparse_file",
        "a file larger than any disk",
        "import os, tempfile\ndef answer(_):\n    f = open(tempfile.gettempdir() + '/big', 'wb')\n"
        "    os.ftruncate(f.fileno(), 1 << 33)\n    return 'done'\n",
        DONE,
    ),
    Attack(
        "endless_output",
        "a grader that keeps all that it prints",
        "import os\nfor _ in range(300): os.write(1, b'x' * 10_000)\n",
        "5",
        "4\n",
        entry=None,
        succeeded=printed_much,
        limits={"output_bytes": 100_000},
    ),
    Attack(
        "large_value",
        "a grader that keeps all that it returns",
        "def answer(_):\n    return 'x' * 3_000_000\n",
        succeeded=printed_much,
        limits={"output_bytes": 100_000},
    ),
    Attack(
        "sleeper",
        "a worker's time",
        "import time\ndef answer(_):\n    time.sleep(@LONG@)\n    return 'done'\n",
        DONE,
        reasons=("timeout",),
        limits={"test_seconds": 1.0},
    ),
    Attack(
        "waiting_thread",
        "a worker's time by a thread that does not end",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(@LONG@,)).start()\nprint(5)\n",
        "5",
        "4\n",
        entry=None,
        reasons=("timeout",),
        limits={"test_seconds": 1.0},
    ),
]
OTHERS = [*READING, *WRITING, *NETWORK, *PROCESSES, *LARGE]

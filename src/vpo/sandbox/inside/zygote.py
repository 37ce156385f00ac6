"""A started interpreter that waits, and forks a sandboxed process for each program.

Starting Python takes ten times as long as forking it. This process has seen no program: a fork shares nothing with the
forks before it but what every Python process begins with. It is asked over a socket that its forks close at once.
"""

import _socket
import array
import ctypes
import gc
import os
import select
import signal
import sys
from contextlib import suppress
from typing import NoReturn

import runner  # type: ignore[import-not-found]  # this folder is sys.path[0]
from status import STATUS  # type: ignore[import-not-found]

FILES = 16  # that come with a message, at most

SET_NAME = 15  # of linux/prctl.h

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Fork for each message, until the other side is closed."""
    control = _socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    _libc.prctl(SET_NAME, b"vpo-zygote")
    gc.collect()
    gc.freeze()
    while True:
        data, messages, _, _ = control.recvmsg(64, _socket.CMSG_SPACE(4 * FILES))
        if not data:
            return
        files = array.array("i")
        for _, _, content in messages:
            files.frombytes(content[: len(content) - len(content) % files.itemsize])
        try:
            child = os.fork()
        except OSError:  # the judge sees its files closed
            child = -1
        if child == 0:
            control.close()
            supervise(*files)
        for file in files:
            os.close(file)


def supervise(
    request: int, printed: int, errors: int, channel: int, given: int, status: int, *namespaces: int
) -> NoReturn:
    """Fork the process of the program, wait for its end, and say how it ended; end it when the judge is gone.

    It cannot be the judge's own child, since it has to be forked from a process that knows no expected output.
    """
    try:
        _libc.prctl(SET_NAME, b"vpo-program")
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for namespace in namespaces:
            if _libc.setns(namespace, 0) < 0:
                raise OSError(ctypes.get_errno(), "setns: " + os.strerror(ctypes.get_errno()))
        program = os.fork()
    except OSError as error:
        os.write(errors, str(error).encode())
        os._exit(1)
    if program == 0:
        os.setsid()
        for file, number in ((request, 0), (printed, 1), (errors, 2)):
            os.dup2(file, number)
        if namespaces:
            os.chdir("/tmp")
        runner.main(channel, given)
    for file in (request, printed, errors, channel, given, *namespaces):
        os.close(file)
    ended = os.pidfd_open(program)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(status, select.POLLIN)
    if ended not in dict(poll.poll()):
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                kill(program, signal.SIGKILL)
    _, code, used = os.wait4(program, 0)
    with suppress(OSError):  # the judge is gone
        os.write(status, STATUS.pack(code, used.ru_utime + used.ru_stime))
    os._exit(0)

"""Runs a program inside the sandbox: reads it, runs it test by test, and writes the results.

The judge trusts nothing here, since the program shares this process and may patch, forge or end all of it. Every
guarantee is enforced from outside, by the isolation backend and by the judge.

The channel to the judge is a socket. Its first line, "ready", is written before any of the program runs. Then the judge
puts the input of a test into a file that can only be read here, and sends a line with the number of the test and the
size of the input. One line answers: ``[number, "returned", value]``, or ``[number, reason, detail]`` for a failure.
What a program prints goes into a file, which the judge empties before each test.
"""

import atexit
import builtins
import fcntl
import gc
import io
import marshal
import os
import resource
import sys
import threading
from _json import encode_basestring_ascii, make_encoder  # importing json takes longer than everything else
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any, NoReturn

import landlock  # type: ignore[import-not-found]  # this folder is sys.path[0]
from values import pack  # type: ignore[import-not-found]  # this folder is sys.path[0]

REQUEST, PRINTED = 0, 1  # descriptors: the request, later each test's standard input; and standard output
INHERITED = 48  # descriptors that the runner begins with are below this, those that it makes are above it

_encode = make_encoder(None, repr, encode_basestring_ascii, None, ":", ",", False, False, True)


def main(channel: int, given: int) -> NoReturn:
    """Read the request, set limits and confinement, and run the program.

    Args:
        channel: the socket to the judge.
        given: the file that holds the input of each test.
    """
    # Whatever else was inherited is closed.
    channel, given = (fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, INHERITED) for file in (channel, given))
    os.closerange(3, INHERITED)
    with os.fdopen(REQUEST, "rb", closefd=False) as file:
        source, entry, limits, confinement = marshal.load(file)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, REQUEST)
    os.dup2(nowhere, 2)
    restrict(limits)
    if confinement is not None:
        landlock.confine(*confinement)

    def send(*message: Any) -> None:
        data = ("".join(_encode(list(message), 0)) + "\n").encode("ascii")
        while data:
            data = data[os.write(channel, data) :]

    def tests() -> Iterator[tuple[int, int]]:
        while line := os.read(channel, 64):
            number, size = line.split()
            yield int(number), int(size)

    sys.path.pop(0)  # this folder
    sys.argv = ["solution.py"]
    send("ready")
    run = run_function if entry else run_script
    run(source, entry, given, tests(), send)
    os._exit(0)  # ends the program's threads too


def restrict(limits: dict[str, int]) -> None:
    """Set the limits of this process, hard ones, which it cannot raise again."""
    for name, value in limits.items():
        number = getattr(resource, name)
        _, most = resource.getrlimit(number)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        # The soft limit of processor time is lower: SIGXCPU tells its end apart from a kill from outside.
        resource.setrlimit(number, (value, value + 1 if name == "RLIMIT_CPU" else value))


def run_function(
    source: str, entry: str, given: int, tests: Iterator[tuple[int, int]], send: Callable[..., None]
) -> None:
    """Execute the program once, and call its function with the arguments of each test."""
    function: Callable[..., Any] | None = None
    problem: tuple[str, str] | None = None
    for number, size in tests:
        if function is None and problem is None:
            try:
                module = fresh_module("solution")
                exec(compile(source, "solution.py", "exec", dont_inherit=True), module.__dict__)
                function = look_up(module, entry)
            except BaseException as error:
                problem = describe(error)
        if function is None:
            send(number, *(problem or ()))
            continue
        try:
            send(number, "returned", pack(function(*marshal.loads(read(given, size)))))
        except BaseException as error:
            send(number, *describe(error))


def read(file: int, size: int) -> bytes:
    """The first bytes of a file."""
    data = os.pread(file, size, 0)
    while len(data) < size and (more := os.pread(file, size - len(data), len(data))):  # one call reads 2 GB at most
        data += more
    return data


def run_script(
    source: str, entry: None, given: int, tests: Iterator[tuple[int, int]], send: Callable[..., None]
) -> None:
    """Execute the program again for each test, with its text on standard input."""
    builtins.exit = builtins.quit = leave  # type: ignore[assignment]  # the module site defines these, and -S leaves it out
    printed = fcntl.fcntl(PRINTED, fcntl.F_DUPFD_CLOEXEC, INHERITED)
    code: CodeType | None = None
    for number, _ in tests:
        try:
            code = code or compile(source, "solution.py", "exec", dont_inherit=True)
            os.dup2(printed, PRINTED)
            os.dup2(given, REQUEST)
            os.lseek(REQUEST, 0, os.SEEK_SET)
            run_once(code)
            message: tuple[str, Any] = ("returned", None)
        except BaseException as error:
            message = describe(error)
        send(number, *message)
        forget()


def run_once(code: CodeType) -> None:
    """Execute a program, then all that Python does at exit: join threads, call atexit functions, flush."""
    sys.stdin, sys.stdout = reading, writing = _text(REQUEST, "r"), _text(PRINTED, "w")
    sys.__stdin__, sys.__stdout__ = reading, writing  # type: ignore[misc]  # for programs that use these
    try:
        exec(code, fresh_module("__main__").__dict__)
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    finish_threads()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, writing):
        if stream is not None and not stream.closed:
            stream.flush()


def forget() -> None:
    """Free what a test has left in memory, so that the next one has all of the limit."""
    sys.stdin = sys.stdout = sys.__stdin__ = sys.__stdout__ = None  # type: ignore[misc]
    sys.modules.pop("__main__", None)
    atexit._clear()  # functions that an exception left uncalled
    gc.unfreeze()
    gc.collect()


def leave(code: Any = None) -> None:
    """Replaces the built-ins `exit` and `quit`."""
    raise SystemExit(code)


def finish_threads() -> None:
    """Join the threads that Python joins at exit."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def fresh_module(name: str) -> ModuleType:
    """An empty module, registered under a name in sys.modules."""
    module = ModuleType(name)
    sys.modules[name] = module
    return module


def look_up(module: ModuleType, entry: str) -> Callable[..., Any]:
    """A function of a module, or a method of a new instance of a class in it."""
    owner, _, name = entry.rpartition(".")
    function: Callable[..., Any] = getattr(getattr(module, owner)() if owner else module, name)
    return function


def describe(error: BaseException) -> tuple[str, str]:
    """The reason of a failure and a short text, even where showing the error raises another."""
    reason = "exception"
    if isinstance(error, MemoryError):
        reason = "memory"
    elif isinstance(error, PermissionError):
        reason = "forbidden"
    try:
        text = "".join(f"{type(error).__name__}: {error}")[:200]
    except BaseException:
        text = "an exception that cannot be shown"
    return reason, text


def _text(descriptor: int, mode: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, mode, closefd=False)
    buffer: Any = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="surrogateescape", line_buffering=False)

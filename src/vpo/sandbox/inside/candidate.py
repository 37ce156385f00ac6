"""The life of a candidate: it reads a program and what to give it, runs it test by test, and writes what came out.

Nothing here is trusted by the judge, since the program shares this process: it may patch, forge or end all of it, and
has only itself to harm. What must hold is held from outside, by the sandbox and by the judge's clock.

The channel to the judge is a pipe. Its first line, "ready", is written before any of the program runs; then a line for
each test: ``[number, "returned", value]``, or ``[number, reason, detail]`` of a failure. What a program prints goes
into a file, and the value is how long that is by then.
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
from _json import encode_basestring_ascii, make_encoder  # the module json takes longer to import than all else
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from values import pack  # type: ignore[import-not-found]  # this folder is the path

PIPE_HOLDS = 65_536
REQUEST, PRINTED = 0, 1  # where the request is read, then each test's input; and where what it prints goes

_encode = make_encoder(None, repr, encode_basestring_ascii, None, ":", ",", False, False, True)


def main() -> None:
    """Read the request, shut the door, and run the program."""
    channel = int(sys.argv[1])
    with os.fdopen(REQUEST, "rb", closefd=False) as file:
        source, entry, first, given, limits, confinement = marshal.load(file)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, REQUEST)
    os.dup2(nowhere, 2)
    restrict(limits)
    if confinement is not None:
        import landlock  # type: ignore[import-not-found]  # it needs ctypes, which bubblewrap spares

        landlock.confine(*confinement)

    def say(*message: Any) -> None:
        text = "".join(_encode(list(message), 0)) + "\n"
        written = text.encode("ascii")
        while written:
            written = written[os.write(channel, written) :]

    sys.path.pop(0)  # of this folder
    sys.argv = ["solution.py"]
    say("ready")
    run = run_function if entry else run_program
    run(source, entry, first, given, say)
    os._exit(0)  # threads that are left end here


def restrict(limits: dict[str, int]) -> None:
    """Set the limits of this process, which nothing in it can raise again."""
    for name, value in limits.items():
        number = getattr(resource, name)
        _, most = resource.getrlimit(number)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        # The soft one of CPU time comes first: a process that it ends is told from one that somebody killed.
        resource.setrlimit(number, (value, value + 1 if name == "RLIMIT_CPU" else value))


def run_function(source: str, entry: str, first: int, given: list[Any], say: Callable[..., None]) -> None:
    """Define what the program defines, and call one function of it with each of the given arguments."""
    module = fresh_module("solution")
    try:
        exec(compile(source, "solution.py", "exec", dont_inherit=True), module.__dict__)
        function = find(module, entry)
    except BaseException as error:
        reason, detail = described(error)
        for number in range(first, first + len(given)):
            say(number, reason, detail)
        return
    for number, arguments in enumerate(given, start=first):
        try:
            value = pack(function(*marshal.loads(arguments)))
            say(number, "returned", value)
        except BaseException as error:
            say(number, *described(error))


def run_program(source: str, entry: None, first: int, given: list[str], say: Callable[..., None]) -> None:
    """Run the program from its beginning with each of the given texts on standard input."""
    builtins.exit = builtins.quit = leave  # type: ignore[assignment]  # site makes these, which is left out
    printed = fcntl.fcntl(PRINTED, fcntl.F_DUPFD_CLOEXEC, 10)  # where no program closes it by the way
    code: CodeType | None = None
    for number, text in enumerate(given, start=first):
        try:
            code = code or compile(source, "solution.py", "exec", dont_inherit=True)
            os.dup2(printed, PRINTED)
            feed(text)
            run_once(code)
            message: tuple[str, Any] = ("returned", os.lseek(printed, 0, os.SEEK_CUR))
        except BaseException as error:
            message = described(error)
        say(number, *message)
        gc.collect()


def run_once(code: CodeType) -> None:
    """Run a program from its beginning to all that Python does at the end of one."""
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


def leave(code: Any = None) -> None:
    """End the program, as `exit` and `quit` do."""
    raise SystemExit(code)


def feed(text: str) -> None:
    """Put a text on standard input."""
    data = text.encode("utf-8", "surrogatepass")
    reading, writing = os.pipe()
    if reading != REQUEST:  # as it is where the program closed its input
        os.dup2(reading, REQUEST)
        os.close(reading)

    def write() -> None:
        left = data
        try:
            while left:
                left = left[os.write(writing, left) :]
        except OSError:  # the program closed its input
            pass
        os.close(writing)

    if len(data) <= PIPE_HOLDS:
        write()
    else:
        threading.Thread(target=write, daemon=True).start()


def finish_threads() -> None:
    """Wait for the threads that Python would wait for at the end of a program."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def fresh_module(name: str) -> ModuleType:
    """Return an empty module that the program finds under a name."""
    module = ModuleType(name)
    sys.modules[name] = module
    return module


def find(module: ModuleType, entry: str) -> Callable[..., Any]:
    """Return a function of a module, or a method of a new object of a class in it."""
    owner, _, method = entry.rpartition(".")
    if owner:
        found: Callable[..., Any] = getattr(getattr(module, owner)(), method)
    else:
        found = getattr(module, entry)
    return found


def described(error: BaseException) -> tuple[str, str]:
    """Return the kind of a failure and a short text on it, however odd the error is."""
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


def _text(number: int, mode: str) -> io.TextIOWrapper:
    raw = io.FileIO(number, mode, closefd=False)
    buffer: Any = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="surrogateescape", line_buffering=False)

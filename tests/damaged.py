"""Damage that a crash, a full disk or a bad copy does to a file, and what a command may answer to it."""

import random
import warnings
from dataclasses import dataclass

from vpo.cli.main import main

GARBAGE = random.Random(0).randbytes(300)


def damages(content, *, log=False):
    """What a file of these bytes may have become, by name; None where it is gone.

    Args:
        content: of the file.
        log: whether it is one of lines, which may be damaged one by one.
    """
    middle = len(content) // 2
    damaged = {
        "deleted": None,
        "emptied": b"",
        "cut in half": content[:middle],
        "null": b"null\n",
        "an empty object": b"{}\n",
        "an empty list": b"[]\n",
        "a number": b"17\n",
        "bad UTF-8": content[:middle] + b"\xff\xfe" + content[middle:],
        "garbage": GARBAGE,
    }
    if log:
        lines = content.splitlines(keepends=True)
        half = len(lines) // 2
        for name, line in {"garbage": b"\x00\x01garbage\n", "null": b"null\n", "empty": b"\n", "{}": b"{}\n"}.items():
            damaged[f"{name} in a line"] = b"".join([*lines[:half], line, *lines[half:]])
        damaged["a cut last line"] = content[: -len(lines[-1]) // 2]
    return damaged


@dataclass(frozen=True)
class Answer:
    """The exit code of a command, and what it printed."""

    code: int
    output: str
    error: str


def answer(arguments, capsys):
    """Run a command in this process. An exception that is no user error fails the test."""
    capsys.readouterr()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        code = main(list(map(str, arguments)))
    output, error = capsys.readouterr()
    return Answer(code, output, "".join(f"vpo: warning: {each.message}\n" for each in warned) + error)


def check(damaged, whole, path):
    """A command says in one line which file is damaged and exits with 2; or it is as if there were no damage.

    Args:
        damaged: the answer to damage.
        whole: the answer without it; None where the command cannot do without the file.
        path: of the damaged file.
    """
    errors = [line for line in damaged.error.splitlines() if line.startswith("vpo: ")]
    assert "Traceback" not in damaged.error
    if damaged.code == 2 or whole is None:
        assert damaged.code == 2
        assert damaged.output == ""
        assert len(errors) == 1 or all(line.startswith("vpo: warning: ") for line in errors[:-1])
        assert errors[-1].startswith("vpo: error: ")
        assert str(path) in errors[-1] or str(path.parent) in errors[-1]
    else:
        said = any(str(path) in line for line in errors)
        assert (damaged.code, whole.code) == (0, 0)
        assert damaged.output == whole.output or said

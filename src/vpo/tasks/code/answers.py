"""Extracts the program of an answer, compares programs, and parses the code of data sets."""

import ast
import warnings

LONGEST = 100_000  # characters of an answer; a longer one has no program
FENCE = "```"
PYTHON = ("python", "python3", "py")


def extract_program(answer: str) -> str | None:
    """The last complete fenced block of Python, or the whole answer where it has no fence.

    A block without a language counts only where none is marked as Python: otherwise it is an example of output. None
    where there is no program, and where a block is opened and never closed.
    """
    if len(answer) > LONGEST:
        return None
    if FENCE not in answer:
        return answer if answer.strip() else None
    last: dict[bool, str] = {}  # the last block marked as Python, and the last without a language
    language: str | None = None  # of the block that is open
    block: list[str] = []
    for line in answer.split("\n"):
        text = line.strip()
        if language is None and text.startswith(FENCE):
            language, block = text.removeprefix(FENCE).strip().lower(), []
        elif language is not None and text == FENCE:
            if language in ("", *PYTHON) and any(each.strip() for each in block):
                last[language in PYTHON] = "\n".join(block)
            language = None
        else:
            block.append(line)
    return last.get(True, last.get(False))


def fenced(source: str) -> str:
    """A program as an answer: in a fenced block."""
    return f"{FENCE}python\n{source.strip()}\n{FENCE}"


def parse_python(source: str) -> ast.Module | None:
    """The syntax tree of code in a data set, None for a text that is not Python.

    Nothing is run, yet a hostile text can take gigabytes: answers are parsed by `vpo.sandbox`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about wrong escapes and comparisons
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def program_form(source: str) -> str | None:
    """The same hash for programs that differ in layout, comments and docstrings only; None for what is not Python."""
    from vpo.sandbox import client

    return client.program_form(source)

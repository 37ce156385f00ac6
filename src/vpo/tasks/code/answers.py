"""Extracts the program of an answer, compares programs, and parses the code of data sets."""

import ast
import re
import warnings
from collections import Counter

from vpo.tasks.fences import FENCE, PYTHON, Fence, fences

LONGEST = 100_000  # characters of an answer; a longer one has no program
_DEFINED = re.compile(r"^(?:(?:async +)?def|class) +([A-Za-z_]\w*)", re.MULTILINE)
_CODE = re.compile(r"\s*+(?:(?:async )?def |class |import \w|from [\w.]+ import |@\w)")
_READS_INPUT = re.compile(r"\binput *\(|\bstdin\b|\bopen\(0")


def extract_program(answer: str, entry: str | None = None) -> str | None:
    """The program of an answer: one fenced block of Python, or the whole answer where it has no fence.

    Of several blocks it is the last that defines the entry point; where none does, the last that defines any function
    or class or reads standard input, so that an example of use is not taken for the program; else the last. A block
    without a language counts only where none that is marked as Python does that: otherwise it is an example of output.
    A block that is never closed counts where there is no other. None where there is no program.

    Args:
        answer: of a model.
        entry: the function that is called, or "Class.method".
    """
    if len(answer) > LONGEST:
        return None
    if FENCE not in answer:
        return answer if answer.strip() else None
    name = "" if entry is None else entry.partition(".")[0]

    def rank(block: Fence) -> int:
        return 2 if name and _defines(block.body, name) else int(is_program(block.body))

    blocks = [(rank(each), each) for each in reversed(blocks_of(answer))]
    highest = max((each for each, _ in blocks), default=0)
    best = [block for each, block in blocks if each == highest]
    return next((each.body for each in best if each.language), best[0].body if best else None)


def blocks_of(answer: str) -> list[Fence]:
    """The blocks of an answer that may be its program, and before them code whose fence is closed but not opened."""
    end = answer.find(f"\n{FENCE}")
    if end < 0 or not _CODE.match(answer) or not is_program(answer[:end]):
        return python_blocks(answer)
    return [Fence(0, end, "", answer[:end], closed=False), *python_blocks(answer)]


def python_blocks(text: str) -> list[Fence]:
    """The fenced blocks that may be programs: closed ones if there are any."""
    blocks = [each for each in fences(text) if each.language in ("", *PYTHON) and each.body.strip()]
    return [each for each in blocks if each.closed] or blocks


def program_blocks(text: str) -> list[Fence]:
    """The blocks of a text that are whole programs, in order, without examples of use.

    They are those that define the name which most blocks define; where no name is defined twice, those that read
    standard input; else the first that defines any.
    """
    blocks = [each for each in fences(text) if each.language in ("", *PYTHON) and each.body.strip()]
    names = [defined_names(each.body) for each in blocks]
    counts = Counter(name for defined in names for name in defined)
    common, count = max(counts.items(), key=lambda item: item[1], default=("", 0))  # the first of those
    reading = [each for each in blocks if _READS_INPUT.search(each.body)]
    if count < 2 and reading:
        return reading
    return [each for each, defined in zip(blocks, names, strict=True) if common in defined] if count else []


def defined_names(source: str) -> dict[str, None]:
    """The functions and classes that a source defines."""
    return dict.fromkeys(_DEFINED.findall(source))


def _defines(source: str, name: str) -> bool:
    """Whether a source defines a name, as a function, a class or a lambda."""
    return name in defined_names(source) or bool(re.search(rf"^{re.escape(name)} *= *lambda\b", source, re.MULTILINE))


def is_program(text: str) -> bool:
    """Whether a text defines a function or class, or reads standard input."""
    return bool(_DEFINED.search(text) or _READS_INPUT.search(text))


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

"""Extracts the program of an answer, compares programs, and parses the code of data sets."""

import ast
import re
import warnings
from collections import Counter

from vpo.tasks.fences import FENCE, PYTHON, Fence, fences

LONGEST = 100_000  # characters of an answer; a longer one has no program
_DEFINED = re.compile(r"^(?:(?:async +)?def|class) +([A-Za-z_]\w*)", re.MULTILINE)
_CODE = re.compile(  # how code begins, after comments
    r"\s*+(?:#[^\n]*+\n\s*+)*+(?:(?:async )?def |class |import \w|from [\w.]+ import |@\w|[rR]?(?:\"{3}|'{3})"
    r"|[A-Za-z_]\w*+(?: *+, *+\w++)*+ *+=[^=])"
)
_READS_INPUT = re.compile(r"\binput *\(|\bstdin\b|\bopen\(0")


def extract_program(answer: str, entry: str | None = None) -> str | None:
    """The program of an answer: one fenced block of Python, or the whole answer where it has no fence.

    Of several blocks it is the last that defines the entry point; where none does, the last that defines any function
    or class or reads standard input, so that an example of use is not taken for the program; else the last. A block
    without a language counts only where none that is marked as Python does that: otherwise it is an example of output.
    Of these, one that is never closed counts where there is no closed one. None where there is no program.

    Args:
        answer: of a model.
        entry: the function that is called, or "Class.method".
    """
    if len(answer) > LONGEST:
        return None
    if FENCE not in answer:
        return answer if answer.strip() else None
    block = program_block(answer, entry)
    return block and block.body


def program_block(answer: str, entry: str | None = None) -> Fence | None:
    """The block of an answer that is its program, as `extract_program` chooses it."""
    name = "" if entry is None else entry.partition(".")[0]

    def rank(block: Fence) -> tuple[int, bool, bool]:
        defines = 2 if name and _defines(block.body, name) else int(is_program(block.body))
        return defines, block.closed, bool(block.language)

    return max(reversed(blocks_of(answer)), key=rank, default=None)  # the last of the best


def blocks_of(answer: str) -> list[Fence]:
    """The blocks of an answer that may be its program, and before them code whose fence is closed but not opened."""
    blocks = python_blocks(answer)
    end = answer.find(f"\n{FENCE}")
    before = answer[: max(0, end)]
    begins, defines = _CODE.match(before), _DEFINED.search(before)
    if not (defines or (begins and is_program(before))) or before.rstrip().endswith(":"):
        return blocks
    # What follows the end of code, and nothing closes, is prose.
    blocks = [each for each in blocks if each.start > end + 1 or each.closed or each.language or is_program(each.body)]
    return [Fence(0, end, "", before, closed=False), *blocks] if begins else blocks


def python_blocks(text: str) -> list[Fence]:
    """The fenced blocks that may be programs."""
    return [each for each in fences(text) if each.language in ("", *PYTHON) and each.body.strip()]


def program_blocks(text: str) -> list[Fence]:
    """The blocks of a text that are whole programs, in order, without examples of use.

    They are those that define the name which most blocks define; where no name is defined twice, those that read
    standard input; else the first that defines any.
    """
    blocks = python_blocks(text)
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

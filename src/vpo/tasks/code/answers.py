"""Extracts the program of an answer, and compares programs."""

import ast
import hashlib
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
    """The syntax tree of a program, None for a text that is not Python. Any text is safe: nothing is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about wrong escapes and comparisons
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def program_form(source: str) -> str | None:
    """The same hash for programs that differ in layout, comments and docstrings only; None for what is not Python."""
    tree = parse_python(source)
    if tree is None:
        return None
    try:
        for node in ast.walk(tree):
            _drop_docstring(node)
        return hashlib.sha256(ast.dump(tree).encode("utf-8", "backslashreplace")).hexdigest()
    except (RecursionError, MemoryError):
        return None


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not node.body:
        return
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        del node.body[0]

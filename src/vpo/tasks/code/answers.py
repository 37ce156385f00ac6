"""Reading a program out of an answer, and telling whether two programs are the same."""

import ast
import hashlib
import warnings

LONGEST = 100_000  # characters of an answer; a longer one is not read
FENCE = "```"
PYTHON = ("python", "python3", "py")


def read_program(answer: str) -> str | None:
    """Return the program of an answer: its last whole fence of Python, or all of it where it has no fence.

    A fence without a language counts where none is of Python: beside one, it is an example of what is printed. None
    where there is no program, and where a fence is opened and never closed.
    """
    if len(answer) > LONGEST:
        return None
    if FENCE not in answer:
        return answer if answer.strip() else None
    found: dict[bool, str] = {}  # the last fence of Python, and the last without a language
    language: str | None = None  # of the fence that is open
    inside: list[str] = []
    for line in answer.split("\n"):
        sign = line.strip()
        if language is None and sign.startswith(FENCE):
            language, inside = sign.removeprefix(FENCE).strip().lower(), []
        elif language is not None and sign == FENCE:
            if language in ("", *PYTHON) and any(each.strip() for each in inside):
                found[language in PYTHON] = "\n".join(inside)
            language = None
        else:
            inside.append(line)
    return found.get(True, found.get(False))


def fenced(source: str) -> str:
    """Return a program as an answer."""
    return f"{FENCE}python\n{source.strip()}\n{FENCE}"


def parsed(source: str) -> ast.Module | None:
    """Return a program as Python reads it, None for one that it does not. Any text is safe: nothing is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons that a program has wrong
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def program_form(source: str) -> str | None:
    """Return what two programs share that differ in layout, comments and docstrings alone; None for what is none."""
    tree = parsed(source)
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

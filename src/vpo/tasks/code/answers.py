"""Reading a program out of an answer, and telling whether two programs are the same."""

import ast
import hashlib
import warnings

LONGEST = 100_000  # characters of an answer; a longer one is not read
FENCE = "```"
LANGUAGES = ("", "python", "python3", "py")


def read_program(answer: str) -> str | None:
    """Return the program of an answer: its last whole fence of Python, or all of it where it has no fence.

    None where there is none, and where a fence is opened and never closed.
    """
    if len(answer) > LONGEST:
        return None
    if FENCE not in answer:
        return answer if answer.strip() else None
    found = None
    language: str | None = None  # of the fence that is open
    inside: list[str] = []
    for line in answer.splitlines():
        sign = line.strip()
        if language is None and sign.startswith(FENCE):
            language, inside = sign.removeprefix(FENCE).strip().lower(), []
        elif language is not None and sign == FENCE:
            if language in LANGUAGES and any(each.strip() for each in inside):
                found = "\n".join(inside)
            language = None
        else:
            inside.append(line)
    return found


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

"""The form of a program: equal for programs that differ in layout, comments and docstrings only.

Parsing hostile sources can take gigabytes and raise anything. So callers use `vpo.sandbox.client.program_form`, which
does it in a process of its own.
"""

import ast
import hashlib
import warnings


def form(source: str) -> str | None:
    """A hash of the syntax tree; None for what is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about wrong escapes and comparisons
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        _drop_docstring(node)
        _shorten(node)
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "backslashreplace")).hexdigest()


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not node.body:
        return
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        del node.body[0]


def _shorten(node: ast.AST) -> None:
    """Write an integer of very many digits in base 16: Python prints none of more than 4,300 digits."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > 4096:
        node.value = f"{node.value:#x}"

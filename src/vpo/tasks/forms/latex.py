"""Repairs LaTeX in JSON strings: unescaped, ``\\times`` begins with a tab, ``\\neq`` with a line end.

A command is recognised by its whole name. One that could be a word or a variable on a new line counts in formulas only,
and none counts in code, where tabs and line ends are meant.
"""

import re

_ESCAPED = {"\b": r"\b", "\f": r"\f", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_NEVER_MEANT = re.compile(r"[\b\f](?=[a-z])")  # \boxed, \frac
# Names without their first letter, which is the escape. No word begins with the rest of them.
_COMMAND = re.compile(
    r"\t(?=(?:ext|extbf|extit|extrm|extsf|exttt|frac|binom|ag) *+\{)"
    r"|\t(?=(?:imes|heta|riangle|riangleq|herefore|ilde|extstyle)(?![A-Za-z]))"
    r"|\n(?=(?:abla|otin|ot|leq|geq|earrow|warrow)(?![A-Za-z]))"
    r"|\r(?=(?:ight|ightarrow|ho|angle|floor|ceil|brace|brack|vert|Vert|m|oot)(?![A-Za-z]))"
)
# The rest of these is a word or a variable, or begins one.
_IN_FORMULA = re.compile(
    r"\t(?=(?:an|anh|au|op)(?![A-Za-z]))|\n(?=(?:eq|eg|mid|exists)(?![A-Za-z]))"
    r"|(?<= )(?:\t(?=o)|\n(?=[eui]))(?=.(?![A-Za-z]))"
)
_FORMULA = re.compile(r"\$[^$]{1,120}\$|\\\([^$]{1,120}?\\\)|\\\[[^$]{1,120}?\\\]")
_CODE = re.compile(
    r"```|^[ \t]*+(?:(?:async )?def \w|class \w|import \w|from [\w.]+ import |return\b|print\("
    r"|(?:for|while|if|else)\b.*:$)",
    re.MULTILINE,
)


def repair_latex(text: str) -> str:
    """A decoded JSON string in which the commands of LaTeX begin with a backslash again. Takes linear time."""
    text = _NEVER_MEANT.sub(_escape, text)
    if _CODE.search(text):
        return text
    return _FORMULA.sub(lambda match: _IN_FORMULA.sub(_escape, match.group()), _COMMAND.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    return _ESCAPED[match.group()]

"""The pages of the documentation, and the blocks of code in them.

A comment before a block says how it is tested:

    <!-- not run: REASON -->     it cannot run here; the reason says why
    <!-- run -->                 a block of commands that runs in each test (commands are only parsed otherwise)
    <!-- run: slow -->           the same, in `make test-slow`; for Python, too
    <!-- before: CODE -->        Python that runs first, which a reader has already: a score function, a data set
"""

import re
import textwrap
from dataclasses import dataclass

from tests.launch import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^<!--(?P<comment>.*?)-->$"
    r"|^(?P<fence> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)```$"
    r"|(?:(?<=\n\n)|\A)(?P<indented>(?:    [^\n]*\n(?:\n(?=    ))?)+)",
    re.MULTILINE | re.DOTALL,
)
MARKS = ("run", "not run", "before")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, and what the comments before it say of it."""

    page: str
    line: int
    language: str
    code: str
    run: str | None  # "" or "slow" with a mark `run`
    not_run: str | None  # the reason
    before: str

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def commands(self):
        """Its lines, continued ones joined, without comments."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")]


def blocks(path):
    """All blocks of a page, in order."""
    text, found = path.read_text() + "\n", []
    marks = dict.fromkeys(MARKS)
    for match in BLOCK.finditer(text):
        if match["comment"] is not None:
            name, _, rest = match["comment"].strip().partition(":")
            if name in MARKS:
                marks[name] = textwrap.dedent(rest.removeprefix("\n")).strip()
            continue
        code = textwrap.dedent(match["code"] or match["indented"] or "")
        line = text.count("\n", 0, match.start()) + 1
        language = match["language"] if match["fence"] is not None else ""
        name = str(path.relative_to(ROOT))
        found.append(Block(name, line, language, code, marks["run"], marks["not run"], marks["before"] or ""))
        marks = dict.fromkeys(MARKS)
    assert not any(marks.values()), f"{path}: a mark stands before no block: {marks}"
    return found


def shell(block):
    """Whether a block has commands of vpo."""
    return block.language in ("", "bash", "sh", "console") and any(each.startswith("vpo ") for each in block.commands)

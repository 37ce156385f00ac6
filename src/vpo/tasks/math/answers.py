"""The final answer of a solution: how it is extracted."""

import re

LONGEST = 20_000  # characters of a solution; a longer one has no final answer
FINAL = 300  # characters of a final answer; a longer one is none
BARE = 100  # characters of a solution that is nothing but a final answer

_BRACES = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{|\\(?:boxed|fbox)\s{1,3}[^\s{}$\\]+|\\.|[{}]", re.DOTALL)


def boxes(text: str) -> list[tuple[int, str]]:
    r"""End position and content of each ``\boxed{…}``. Braces must balance; takes linear time."""
    contents: list[tuple[int, str]] = []
    opened: list[int | None] = []  # position of the content of a box, None for another brace
    for match in _BRACES.finditer(text):
        token = match.group()
        if token.endswith("{") and len(token) > 2:
            opened.append(match.end())
        elif token.startswith((r"\boxed", r"\fbox")):
            contents.append((match.end(), token.split(None, 1)[1]))
        elif token == "{":
            opened.append(None)
        elif token == "}" and opened and (begin := opened.pop()) is not None:
            contents.append((match.end(), text[begin : match.start()].strip()))
    return contents


def one_box(text: str) -> bool:
    """Whether all boxes of a text, one or more, have the same content."""
    return len({content for _, content in boxes(text)}) == 1


def final_answer(solution: str) -> str | None:
    r"""The final answer of a solution, None without one.

    It is the content of the last ``\boxed{…}`` or what follows the last ``####`` on its line, whichever comes later; or
    the whole solution, where it is one short line without either.
    """
    if len(solution) > LONGEST:
        return None
    mark = solution.rfind("####")
    end, content = max(boxes(solution), default=(-1, ""))
    if mark > end:
        content = solution[mark + 4 :].partition("\n")[0]
    elif end < 0:
        content = solution.strip()
        if len(content) > BARE or "\n" in content:
            return None
    content = content.strip().strip("$").strip()
    return content if 0 < len(content) <= FINAL else None

"""The error model.

Wrong input is an `InputError`, a `ValueError`. It is raised where the value enters, before anything is computed. Its
sentence names the argument, the value and the bound: ``k must lie in 1..30, the size of the pool, not 31``. The command
line prints that sentence and exits with code 2. An error in a file begins with file and line: ``pool.jsonl:17: …``.

A bad rollout is data, not a crash:

- A set with no readable answer has reward 0 (`mask` has no true entry).
- A rollout whose reward is unknown (`valid` is false) is no part of its group and has advantage 0.
- A group with too few valid rollouts, or with equal rewards, has advantage 0.

Where several processes train together, an error in one ends all. The others raise an `OtherProcessError`, which the
command line does not print (`vpo.util.processes`).

Everything else is a bug of this library and shows its traceback.
"""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A value from outside that cannot be used. The message names the argument, the value and the bound."""


def one_line(text: object) -> str:
    """A message of other code, of any length, to be a part of a one-line message: at most 200 characters."""
    return " ".join(str(text).split())[:200]


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: the most similar known name, or all known names."""
    names = list(known)
    similar = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(names)}"

"""The error model, whole.

Wrong input is an `InputError`, a `ValueError`. It is raised where the value enters, before any
computing, and its one sentence names the argument, the value and the bound:
``k must lie in 1..30, the size of the pool, not 31``. On the command line it is that sentence and exit
code 2. In a file it opens with the place: ``pool.jsonl:17: …``.

A bad rollout is data, not a crash:

- A set with no readable answer earns 0 (`mask` has no true entry).
- A rollout whose reward is not known (`valid` is false) takes no part in its group and gets advantage 0.
- A group that is left with too few valid rollouts, or with no spread, gets advantage 0.

Where several processes train together, what one raises ends all; in the others it is an `OtherProcessError`, of which
the command line says nothing (`vpo.util.processes`).

Everything else is a bug of this library and shows its traceback.
"""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A value from outside that cannot be used. The message names the argument, the value and the bound."""


def one_line(text: object) -> str:
    """Return what somebody else's code says, of any length, as a part of our one line."""
    return " ".join(str(text).split())[:200]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for a name that is not known: the one that is nearest, or all that there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"

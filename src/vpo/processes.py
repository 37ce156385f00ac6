"""Several processes that train one policy together, as `accelerate launch` starts them. One alone needs none of this.

The first of them, the main one, writes the run folder and speaks. Each waits for what all do, so where one fails the
others must hear of it: `together` tells them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vpo.errors import InputError


class OtherProcessError(InputError):
    """Another process failed, and says why itself."""


def count() -> int:
    """Return how many processes were started together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def index() -> int:
    """Return the place of this process among them."""
    return int(os.environ.get("RANK", "0")) if count() > 1 else 0


def is_main() -> bool:
    """Return whether this process is the one that writes and speaks."""
    return index() == 0


def command() -> str:
    """Return how users start `vpo` as it was started."""
    return "vpo" if count() == 1 else "accelerate launch … -m vpo"


def gathered(value: Any) -> list[Any]:
    """Return the value of each process, in their order. All must call it."""
    if count() == 1:
        return [value]
    import torch
    from accelerate import PartialState
    from accelerate.utils import gather_object

    PartialState(cpu=not torch.cuda.is_available())  # joins the others, if that is still to be done
    found: list[Any] = gather_object([value])
    return found


@contextmanager
def together() -> Iterator[None]:
    """Wait at the end for the others, and fail in all processes where one fails: none goes on, or waits, without it.

    What the first of those that failed raises is raised there alone; in the others it is an `OtherProcessError`.
    """
    caught: Exception | None = None
    try:
        yield
    except Exception as error:
        if count() == 1:
            raise
        caught = error
    texts = gathered(None if caught is None else f"{type(caught).__name__}: {caught}")
    failed = next((place for place, text in enumerate(texts) if text is not None), None)
    if failed is None:
        return
    if caught is not None and failed == index():
        raise caught
    raise OtherProcessError(f"process {failed} failed: {texts[failed]}") from caught


def leave() -> None:
    """Wait until all processes are done, so that none is stopped for the end of another, and part."""
    if count() > 1:
        from accelerate import PartialState

        with together():
            pass
        PartialState().destroy_process_group()

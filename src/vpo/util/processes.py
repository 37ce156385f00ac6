"""Several processes that train one policy together, as `accelerate launch` starts them. One alone needs none of this.

The first of them, the main one, writes the run folder and speaks. Each waits for what all do, so where one fails the
others must hear of it: `together` tells them.
"""

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn

from vpo.util.errors import InputError


class OtherProcessError(InputError):
    """Another process failed, and says why itself."""


# How long a process waits for the others, such as for one that saves or scores: what transformers has by default.
PATIENCE = timedelta(minutes=30)


def count() -> int:
    """Return how many processes were started together. A launcher tells each its LOCAL_RANK; a scheduler does not."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1


def check_alone(command: str) -> None:
    """Refuse to be one of several processes, where only training is shared."""
    if count() > 1:
        error = InputError if is_main() else OtherProcessError
        raise error(f"{command} runs in 1 process, not {count()}: start it without a launcher")


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
    from accelerate.utils import gather_object

    _join()
    found: list[Any] = gather_object([value])
    return found


def _join() -> None:
    """Meet the other processes, if that is still to be done; each has a GPU of its own from then on."""
    import torch
    from accelerate import PartialState

    PartialState(cpu=not torch.cuda.is_available(), timeout=PATIENCE)


def main_says(value: Any) -> Any:
    """Return the value of the main process: disks that are shared may show each another state. All must call it."""
    return gathered(value)[0]


@contextmanager
def together() -> Iterator[None]:
    """Wait at the end for the others, and fail in all processes where one fails: none goes on, or waits, without it.

    What the first of those that failed raises is raised there alone; in the others it is an `OtherProcessError`.
    """
    caught: Exception | None = None
    if count() > 1:
        _join()
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


def end(code: int) -> NoReturn:
    """End this process. One of several does so at once: torch's threads abort some of those that end by and by."""
    if count() > 1:
        atexit._run_exitfuncs()  # of trackers, which send what they still hold
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)

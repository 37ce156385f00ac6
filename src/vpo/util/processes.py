"""Several processes that train one policy together, as `accelerate launch` starts them.

The first, the main process, writes the run folder and prints. Processes wait for each other in collective operations,
so an error in one must reach the others, or they wait until a timeout: see `together`. In a single process every
function here is trivial.
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
    """Another process failed, and prints the reason."""


# How long a process waits for the others, such as for one that saves or scores: the default of transformers.
TIMEOUT = timedelta(minutes=30)


def count() -> int:
    """How many processes a launcher started together. A launcher sets LOCAL_RANK; a cluster's scheduler does not."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1


def check_alone(command: str) -> None:
    """Raise where a launcher started several processes of a command that is not `vpo train`."""
    if count() > 1:
        error = InputError if is_main() else OtherProcessError
        raise error(f"{command} runs in 1 process, not {count()}: start it without a launcher")


def index() -> int:
    """The rank of this process."""
    return int(os.environ.get("RANK", "0")) if count() > 1 else 0


def is_main() -> bool:
    """Whether this process is the one that writes and prints."""
    return index() == 0


def command() -> str:
    """The beginning of a command line that starts `vpo` as it was started."""
    return "vpo" if count() == 1 else "accelerate launch … -m vpo"


def gathered(value: Any) -> list[Any]:
    """The value of each process, by rank. All processes must call it."""
    if count() == 1:
        return [value]
    from accelerate.utils import gather_object

    _join()
    values: list[Any] = gather_object([value])
    return values


def _join() -> None:
    """Join the process group, unless this process has; each process has its own GPU from then on."""
    import torch
    from accelerate import PartialState

    PartialState(cpu=not torch.cuda.is_available(), timeout=TIMEOUT)


def from_main(value: Any) -> Any:
    """The value of the main process, since a shared disk may look different to each. All processes must call it."""
    return gathered(value)[0]


@contextmanager
def together() -> Iterator[None]:
    """Wait for the other processes at the end of the block, and raise in all of them where one raises.

    The error of the lowest rank that failed is raised there; the other processes raise an `OtherProcessError`.
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
    failed = next((rank for rank, text in enumerate(texts) if text is not None), None)
    if failed is None:
        return
    if caught is not None and failed == index():
        raise caught
    raise OtherProcessError(f"process {failed} failed: {texts[failed]}") from caught


def barrier() -> None:
    """Wait until all processes are here."""
    with together():
        pass


def leave() -> None:
    """Wait until all processes are done, then leave the process group."""
    if count() > 1:
        from accelerate import PartialState

        barrier()
        PartialState().destroy_process_group()


def end(code: int) -> NoReturn:
    """End this process. One of several exits immediately: torch's threads abort some that shut down normally."""
    if count() > 1:
        atexit._run_exitfuncs()  # trackers send what they have buffered
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)

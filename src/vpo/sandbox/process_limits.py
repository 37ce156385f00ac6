"""A bound on how many processes and threads a command may have together, kept by the kernel.

A limit of resources (RLIMIT_NPROC) bounds those of any user but root. For root it is a control group, where one can be
made. Where it cannot, the command runs when nothing else wants to, so that whoever watches it is never starved.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PIDS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # roots of control groups, of version 1 and 2
# Runs inside the user's namespace, whose processes alone count towards the limit.
_LIMITED = """
import os, resource, sys
_, most, idle, *command = sys.argv
resource.setrlimit(resource.RLIMIT_NPROC, (int(most), int(most)))
if idle == "idle":
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.execvp(command[0], command)
"""
_JOINING = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


def limited(command: Sequence[str], most: int, group: Path | None) -> list[str]:
    """A command that bounds itself, for inside its namespaces.

    Args:
        command: its words.
        most: processes and threads.
        group: its control group, if it has one.
    """
    idle = "idle" if os.geteuid() == 0 and group is None else ""
    return [sys.executable, "-I", "-S", "-c", _LIMITED, str(most), idle, *command]


def joining(command: Sequence[str], group: Path | None) -> list[str]:
    """A command that joins its control group first."""
    return list(command) if group is None else ["/bin/sh", "-c", _JOINING, str(group), *command]


@contextmanager
def control_group(most: int) -> Iterator[Path | None]:
    """Make a control group of at most so many processes and threads; None where that cannot be, or need not."""
    group = _new_group(most) if os.geteuid() == 0 else None
    try:
        yield group
    finally:
        if group is not None:
            with suppress(OSError):  # something of it is still ending
                group.rmdir()


def _new_group(most: int) -> Path | None:
    for root in PIDS:
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="vpo-", dir=root))
            with open(folder / "pids.max", "r+") as file:  # it is there, unless the limit is not
                file.write(str(most))
            return folder
        except OSError:  # it is read-only, not there, or has no such limit
            if folder is not None:
                with suppress(OSError):
                    folder.rmdir()
    return None

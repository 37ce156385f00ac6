"""A plain runner, as graders have that trust a program: it shares a process with its tests and expected values.

Nothing here depends on how loaded the machine is: the time limit of a test is processor time, which a process has only
when it runs, and what else is waited for is an event.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 0.5  # of processor time, for a test
HANGS = 600.0  # seconds after which a runner hangs that waits for nothing
RUNNER = """
import io, pickle, signal, sys, time

def compare(actual, expected, inputs):
    if expected == "the inputs, sorted":
        expected = sorted(inputs[0])
    if isinstance(expected, float):
        return not abs(actual - expected) > 1e-6
    return bool(actual == expected)

def too_long(*_):
    raise TimeoutError

def run(inputs, expected):
    if entry:
        return namespace[entry](*inputs)
    kept = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = io.StringIO(inputs), io.StringIO()
    try:
        exec(source, {"__name__": "__main__"})
        return sys.stdout.getvalue().strip()
    finally:
        sys.stdin, sys.stdout = kept

source, entry, cases = pickle.load(sys.stdin.buffer)
namespace = {"__name__": "solution"}
passed, values, took = [], [], []
signal.signal(signal.SIGVTALRM, too_long)
if entry:
    exec(source, namespace)
for inputs, expected in cases:
    began = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, @SECONDS@)
        actual = run(inputs, expected)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        values.append(actual)
        passed.append(compare(actual, expected, inputs))
    except Exception as error:
        print("failed:", error)
        passed.append(False)
    took.append(time.perf_counter() - began)
for value in values:
    print("value:", value)
    try:
        print("pickled:", pickle.dumps(value).hex())
    except Exception:
        print("pickled:")
import json
json.dumps(values, default=id)
print(json.dumps({"passed": passed, "seconds": took}))
sys.stdout.flush()
sys.exit(0 if all(passed) else 1)
""".replace("@SECONDS@", str(SECONDS))


@dataclass
class Plain:
    """How a plain runner ended, and what it printed."""

    code: int
    output: bytes

    @property
    def report(self) -> dict[str, Any] | None:
        """The report in the last line; None without one, which such a grader takes for an error of its own."""
        try:
            report = json.loads(self.output.decode().strip().splitlines()[-1])
        except (ValueError, IndexError):
            return None
        return report if isinstance(report, dict) else None

    @property
    def passed(self) -> bool:
        return self.report is not None and all(self.report["passed"])

    def unpickled(self) -> list[Any]:
        """The returned values, as a grader gets them whose workers send pickled objects."""
        lines = [line for line in self.output.splitlines() if line.startswith(b"pickled: ")]
        return [pickle.loads(bytes.fromhex(line.split()[1].decode())) for line in lines]


def run_plain(source: str, entry: str | None, cases: Sequence[tuple[Any, Any]], folder: str) -> Plain:
    """Run a program as if it could be trusted, in a process that has all that this one has."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", RUNNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": folder, "PYTHONPATH": "", "PYTHONIOENCODING": "utf-8"},
        cwd=folder,
        close_fds=False,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(pickle.dumps((source, entry, list(cases))), timeout=HANGS)
        return Plain(process.returncode, output)
    finally:
        with contextlib.suppress(ProcessLookupError):  # what it left in its group
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

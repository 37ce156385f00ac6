"""What graders do that trust a program: it runs in one process with its tests and the values expected of it."""

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

RUNNER = """
import io, pickle, signal, sys, time

def compare(found, expected, given):
    if expected == "the inputs, sorted":
        expected = sorted(given[0])
    if isinstance(expected, float):
        return not abs(found - expected) > 1e-6
    return bool(found == expected)

def too_long(*_):
    raise TimeoutError

def run(given, expected):
    if entry:
        return namespace[entry](*given)
    kept = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = io.StringIO(given), io.StringIO()
    try:
        exec(source, {"__name__": "__main__"})
        return sys.stdout.getvalue().strip()
    finally:
        sys.stdin, sys.stdout = kept

source, entry, cases = pickle.load(sys.stdin.buffer)
namespace = {"__name__": "solution"}
passed, values, took = [], [], []
signal.signal(signal.SIGALRM, too_long)
if entry:
    exec(source, namespace)
for given, expected in cases:
    began = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        found = run(given, expected)
        signal.setitimer(signal.ITIMER_REAL, 0)
        values.append(found)
        passed.append(compare(found, expected, given))
    except Exception as error:
        print("failed:", error)
        passed.append(False)
    took.append(time.perf_counter() - began)
for found in values:
    print("found:", found)
    try:
        print("pickled:", pickle.dumps(found).hex())
    except Exception:
        print("pickled:")
import json
json.dumps(values, default=id)
print(json.dumps({"passed": passed, "seconds": took}))
sys.stdout.flush()
sys.exit(0 if all(passed) else 1)
"""


@dataclass
class Plain:
    """What a plain runner tells of a program."""

    code: int
    output: bytes

    @property
    def report(self) -> dict[str, Any] | None:
        """What the last line says, nothing where there is none: such a grader takes that for an error of its own."""
        try:
            said = json.loads(self.output.decode().strip().splitlines()[-1])
        except (ValueError, IndexError):
            return None
        return said if isinstance(said, dict) else None

    @property
    def passed(self) -> bool:
        return self.report is not None and all(self.report["passed"])

    def unpickled(self) -> list[Any]:
        """Return what was returned as a grader gets it that lets its workers send objects."""
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
        output, _ = process.communicate(pickle.dumps((source, entry, list(cases))), timeout=20)
        return Plain(process.returncode, output)
    finally:
        with contextlib.suppress(ProcessLookupError):  # what it left in its group
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

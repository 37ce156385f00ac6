"""What the sandbox costs, beside no protection and beside a new sandbox for each test; ratios of one run.

python benchmarks/sandbox.py MBPPPLUS.jsonl.gz [--candidates 10000] [--json]
"""

import argparse
import gc
import gzip
import json
import marshal
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from timing import report
from vpo.progress import progress
from vpo.sandbox import Limits, Outcome, Program, Sandbox

ROOMY = Limits(test_seconds=60, seconds=300, memory_mb=1024)
HASTY = Limits(test_seconds=0.5, seconds=1.0)
LOOP = Program("def f(*_):\n    while True:\n        pass\n", "f")

# What a grader without walls does: all programs in one process, each test with inputs of its own.
PLAIN = """
import marshal, sys, time
jobs = marshal.load(sys.stdin.buffer)
began = time.perf_counter()
for source, entry, given in jobs:
    names = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), names)
    for arguments in given:
        try:
            names[entry](*marshal.loads(arguments))
        except Exception:
            pass
print(time.perf_counter() - began)
"""


Jobs = list[tuple[Program, list[tuple[object, ...]]]]


def read(path: str) -> Jobs:
    """Return the canonical solutions and all the inputs that ship with them."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        (
            Program(row["canonical_solution"], row["entry_point"]),
            [tuple(each) for each in [*row["base_input"], *row["plus_input"]]],
        )
        for row in rows
    ]


def unprotected_seconds(jobs: Jobs) -> float:
    plain = [(program.source, program.entry, [marshal.dumps(each) for each in given]) for program, given in jobs]
    done = subprocess.run([sys.executable, "-c", PLAIN], input=marshal.dumps(plain), capture_output=True, check=True)
    return float(done.stdout.split()[-1])


def sandboxed_seconds(sandbox: Sandbox, jobs: Jobs) -> float:
    began = time.perf_counter()
    outputs = sandbox.outputs_many(jobs)
    spent = time.perf_counter() - began
    failures = [each.failure for some in outputs for each in some if each.failure]
    assert all(failure.outcome is not Outcome.ERROR for failure in failures), failures
    return spent


def each_alone_a_second(sandbox: Sandbox, jobs: Jobs, count: int) -> float:
    """Tests a second with a sandbox for each: of some drawn from all."""
    tests = [(program, [each]) for program, given in jobs for each in given]
    drawn = Random(0).sample(tests, count)
    return count / sandboxed_seconds(sandbox, drawn)


def share_beside_loops(jobs: Jobs) -> float:
    """What is left of the tests a second where one program of ten loops, beyond the time that it is granted."""
    quick = [(program, given[:16]) for program, given in jobs]
    loops = [(LOOP, [()] * 2)] * (len(quick) // 10)
    with Sandbox(limits=HASTY) as sandbox:
        without = sandboxed_seconds(sandbox, quick)
        mixed = quick + loops
        Random(0).shuffle(mixed)
        spent = sandboxed_seconds(sandbox, mixed) - len(loops) * HASTY.seconds / sandbox.workers
    return without / max(spent, 1e-9)


def row_of_candidates(count: int) -> tuple[float, int, int]:
    """Return megabytes that the judge grew by in so many programs, processes left behind, and open files more."""
    program = Program("def f(n):\n    return n + 1\n", "f")
    with Sandbox(limits=HASTY) as sandbox:
        sandbox.outputs_many([(program, [(1,)])] * 200)
        before, files = _resident(), len(os.listdir("/proc/self/fd"))
        for _ in progress(range(count // 200), "candidates", count // 200):
            sandbox.outputs_many([(program, [(1,)])] * 200)
        gc.collect()
        grown, more = _resident() - before, len(os.listdir("/proc/self/fd")) - files
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return grown, len(children), more


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def figures(path: str, candidates: int) -> list[tuple[str, float, str]]:
    jobs = read(path)
    tests = sum(len(given) for _, given in jobs)
    with Sandbox(limits=ROOMY) as sandbox:
        how = f"{sandbox.workers} at once, behind {sandbox.wall.name}"
        print(f"{len(jobs)} programs, {tests:,} tests, {how}", file=sys.stderr)
        plain = unprotected_seconds(jobs)
        ours = sandboxed_seconds(sandbox, jobs)
        alone = each_alone_a_second(sandbox, jobs, 400)
    grown, children, files = row_of_candidates(candidates)
    return [
        ("tests a second", tests / ours, ""),
        ("times those of a new sandbox for each test", tests / ours / alone, "at least 10"),
        ("times as long as unprotected in one process", ours / plain, "at most 3"),
        ("of that kept where one program of ten loops, beyond its limit", share_beside_loops(jobs), "at least 0.5"),
        (f"megabytes that the judge grew by in {candidates:,} programs", grown, "flat"),
        ("processes left behind", children, "0"),
        ("open files left behind", files, "0"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="mbppplus.jsonl.gz of EvalPlus")
    parser.add_argument("--candidates", type=int, default=10_000, help="how many in a row (10,000)")
    parser.add_argument("--json", action="store_true", help="write JSON")
    options = parser.parse_args()
    report(figures(options.data, options.candidates), as_json=options.json)

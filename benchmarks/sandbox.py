"""What the sandbox costs, against no sandbox and against a new sandbox for each test; ratios within one run.

python benchmarks/sandbox.py MBPPPLUS.jsonl.gz [--programs 10000] [--json]
"""

import argparse
import gc
import marshal
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from timing import report
from vpo.sandbox import Case, Limits, Program, Sandbox
from vpo.tasks.code import CodeTask
from vpo.tasks.code.problem import program_calls
from vpo.util.progress import progress

GENEROUS = Limits(test_seconds=60, seconds=300, memory_mb=1024, output_bytes=16_000_000)
SHORT = Limits(test_seconds=0.5, seconds=1.0)
SLOW = "sum_average"  # Mbpp/599: seconds a test
LOOP = Program("def f(*_):\n    while True:\n        pass\n", "f")

# What a grader without a sandbox does: all programs in one process, each test with its own copy of the inputs.
PLAIN = """
import marshal, sys, time
jobs = marshal.load(sys.stdin.buffer)
began = time.perf_counter()
for source, entry, inputs in jobs:
    names = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), names)
    for arguments in inputs:
        try:
            names[entry](*marshal.loads(arguments))
        except Exception:
            pass
print(time.perf_counter() - began)
"""


Jobs = list[tuple[Program, list[Case]]]


def read(path: str) -> Jobs:
    """The solutions of a file, with all their tests."""
    task = CodeTask(data=path)
    problems = task.problems()
    task.prepare(problems)
    return [
        (call.program, call.cases)
        for problem in problems
        for call in program_calls(problem.solution or "", "", problem.entry, (*problem.checks, *problem.hidden))
    ]


def unprotected_seconds(jobs: Jobs) -> float:
    plain = [(program.source, program.entry, [marshal.dumps(case.input) for case in cases]) for program, cases in jobs]
    done = subprocess.run([sys.executable, "-c", PLAIN], input=marshal.dumps(plain), capture_output=True, check=True)
    return float(done.stdout.split()[-1])


def sandboxed_seconds(sandbox: Sandbox, jobs: Jobs) -> float:
    """Seconds that grading takes. Prints the tests that solutions do not pass."""
    began = time.perf_counter()
    graded = sandbox.grade_many(jobs)
    spent = time.perf_counter() - began
    wrong = [
        (program.entry, verdict)
        for (program, _), verdicts in zip(jobs, graded, strict=True)
        for verdict in verdicts
        if program is not LOOP and not verdict.passed
    ]
    if wrong:
        print(f"{len(wrong)} tests of solutions are not passed: {wrong[:3]}", file=sys.stderr)
    return spent


def tests_per_second_alone(sandbox: Sandbox, jobs: Jobs, count: int) -> float:
    """Tests a second with a new sandbox for each, of a sample."""
    tests = [(program, [case]) for program, cases in jobs for case in cases]
    return count / sandboxed_seconds(sandbox, Random(0).sample(tests, count))


def share_beside_loops(jobs: Jobs) -> float:
    """Share of the tests a second that is left where one program of ten loops, not counting its time limit."""
    quick = [(program, cases[:16]) for program, cases in jobs if program.entry != SLOW]
    loops = [(LOOP, [Case((), None)] * 2)] * (len(quick) // 10)
    with Sandbox(limits=SHORT) as sandbox:
        without = sandboxed_seconds(sandbox, quick)
        mixed = quick + loops
        Random(0).shuffle(mixed)
        spent = sandboxed_seconds(sandbox, mixed) - len(loops) * SHORT.seconds / sandbox.workers
    return without / max(spent, 1e-9)


def leaks(count: int) -> tuple[float, int, int]:
    """Growth of this process in megabytes over `count` programs; processes and open files left behind."""
    program = Program("def f(n):\n    return n + 1\n", "f")
    with Sandbox(limits=SHORT) as sandbox:
        sandbox.outputs_many([(program, [(1,)])] * 200)
        before, files = _resident(), len(os.listdir("/proc/self/fd"))
        for _ in progress(range(count // 200), "programs", count // 200):
            sandbox.outputs_many([(program, [(1,)])] * 200)
        gc.collect()
        grown, more = _resident() - before, len(os.listdir("/proc/self/fd")) - files
    server, *others = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    judges = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return grown, len(judges) + len(others), more


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def figures(path: str, programs_in_a_row: int) -> list[tuple[str, float, str]]:
    jobs = read(path)
    tests = sum(len(cases) for _, cases in jobs)
    with Sandbox(limits=GENEROUS) as sandbox:
        how = f"{sandbox.workers} in parallel, under {sandbox.isolation.name}"
        print(f"{len(jobs)} programs, {tests:,} tests, {how}", file=sys.stderr)
        plain = unprotected_seconds(jobs)
        ours = sandboxed_seconds(sandbox, jobs)
        alone = tests_per_second_alone(sandbox, jobs, 400)
    grown, children, files = leaks(programs_in_a_row)
    return [
        ("tests a second", tests / ours, ""),
        ("programs a second, of one test each", alone, ""),
        ("times those of a new sandbox for each test", tests / ours / alone, "at least 10"),
        ("times as long as unprotected in one process", ours / plain, "at most 3"),
        ("of that kept where one program in ten loops, beyond its limit", share_beside_loops(jobs), "at least 0.5"),
        (f"megabytes that the grader grew by in {programs_in_a_row:,} programs", grown, "flat"),
        ("processes left behind", children, "0"),
        ("open files left behind", files, "0"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="mbppplus.jsonl.gz of EvalPlus")
    parser.add_argument("--programs", type=int, default=10_000, help="how many in a row (10,000)")
    parser.add_argument("--json", action="store_true", help="write JSON")
    options = parser.parse_args()
    report(figures(options.data, options.programs), as_json=options.json)

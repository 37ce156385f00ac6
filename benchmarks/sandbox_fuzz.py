"""Judges random programs, and measures what that does to the process that judges: it must not notice.

python benchmarks/sandbox_fuzz.py [--programs 20000] [--seed 0] [--first 0] [--isolation NAME] [--json]

Program i of a seed is always the same: `--first i --programs 1` repeats it alone, and prints it with its verdict.
"""

import argparse
import gc
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from heartbeat import Heartbeat
from hostile import Fuzzed, fuzzed
from timing import report
from vpo.sandbox import Case, Limits, Program, Sandbox, Status, Verdict
from vpo.tasks.code.answers import program_form
from vpo.util.progress import progress

LIMITS = Limits(test_seconds=0.5, seconds=0.6, memory_mb=256, output_bytes=16_000_000)
TESTS = 2  # of each program
BATCH = 100  # programs of one call


@dataclass
class Findings:
    """What has happened so far."""

    standstill: float = 0.0
    growth: float = 0.0
    raised: list[str] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)  # hostile programs
    failed: list[int] = field(default_factory=list)  # honest programs
    errors: list[int] = field(default_factory=list)  # infrastructure errors
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, index: int, program: Fuzzed, verdicts: list[Verdict]) -> None:
        """Count the verdicts on one program."""
        self.reasons.update(verdict.reason or verdict.status.value for verdict in verdicts)
        if any(verdict.status is Status.ERROR for verdict in verdicts):
            self.errors.append(index)
        elif program.honest and not all(verdict.passed for verdict in verdicts):
            self.failed.append(index)
        elif not program.honest and any(verdict.passed for verdict in verdicts):
            self.passed.append(index)
        else:
            return
        print(f"program {index}, {'honest' if program.honest else 'hostile'}: {verdicts}", file=sys.stderr)


def run(box: Sandbox, seed: int, indices: range, findings: Findings) -> None:
    """Judge some programs in one call, and take the form of each source."""
    programs = [fuzzed(f"{seed}-{index}") for index in indices]
    jobs = [(Program(each.source, each.entry), [Case(each.input, each.expected)] * TESTS) for each in programs]
    with Heartbeat() as heartbeat:
        try:
            graded = box.grade_many(jobs)
            for program in programs:
                program_form(program.source)
        except Exception as error:
            findings.raised.append(f"{indices}: {error!r:.200}")
            return
    if heartbeat.standstill > findings.standstill or heartbeat.growth > findings.growth:
        print(f"{indices}: {heartbeat.standstill:.3f} s, {heartbeat.growth:.0f} MB", file=sys.stderr)
    findings.standstill = max(findings.standstill, heartbeat.standstill)
    findings.growth = max(findings.growth, heartbeat.growth)
    for index, program, verdicts in zip(indices, programs, graded, strict=True):
        findings.add(index, program, verdicts)
        if len(indices) == 1:
            print(f"{program}\n{verdicts}", file=sys.stderr)


def figures(options: argparse.Namespace) -> list[tuple[str, float, str]]:
    """Rows for the table, after all programs."""
    findings = Findings()
    with Sandbox(limits=LIMITS, isolation=options.isolation) as box:
        box.grade(Program("print(5)"), [Case("", "5")])  # what is started once is started
        program_form("5")
        files, children, began = len(os.listdir("/proc/self/fd")), len(_children()), time.perf_counter()
        last = options.first + options.programs
        starts = range(options.first, last, BATCH)
        for start in progress(starts, "programs", len(starts)):
            run(box, options.seed, range(start, min(start + BATCH, last)), findings)
        seconds = time.perf_counter() - began
        gc.collect()
        files, children = len(os.listdir("/proc/self/fd")) - files, len(_children()) - children
    print(f"{box.isolation.name}: {dict(findings.reasons.most_common())}", file=sys.stderr)
    for problem in findings.raised:
        print(problem, file=sys.stderr)
    return [
        ("programs", options.programs, ""),
        ("programs a second", options.programs / seconds, ""),
        ("seconds: the longest standstill of the judge's process", findings.standstill, "at most 0.05"),
        ("megabytes: its largest growth in a call of 100 programs", findings.growth, "at most 64"),
        ("exceptions raised", len(findings.raised), "0"),
        ("hostile programs passed", len(findings.passed), "0"),
        ("honest programs failed", len(findings.failed), "0"),
        ("infrastructure errors", len(findings.errors), "0"),
        ("open files left behind", files, "0"),
        ("processes left behind", children, "0"),
    ]


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=20_000, help="how many (20,000)")
    parser.add_argument("--seed", type=int, default=0, help="of all of them (0)")
    parser.add_argument("--first", type=int, default=0, help="index of the first (0)")
    parser.add_argument("--isolation", help="the backend (the first that works)")
    parser.add_argument("--json", action="store_true", help="write JSON")
    options = parser.parse_args()
    report(figures(options), as_json=options.json)

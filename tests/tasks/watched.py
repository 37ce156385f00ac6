"""The real sandbox, which records its jobs and can be made to fail."""

import json

import pytest

from vpo.sandbox import Output, shared
from vpo.sandbox.verdicts import Status, Verdict
from vpo.tasks.code import CodeTask
from vpo.util.errors import InputError

BROKEN = Verdict(Status.ERROR, detail="made to fail")


class WatchedSandbox:
    """Runs programs. One whose source contains `broken` is an infrastructure error."""

    def __init__(self, broken="BROKEN"):
        try:
            self.sandbox = shared()
        except InputError as error:
            pytest.skip(str(error))
        self.limits, self.isolation = self.sandbox.limits, self.sandbox.isolation
        self.broken = broken
        self.calls = []  # the programs and numbers of cases of each call
        self.solved = []  # the programs of each call that asks for outputs

    def grade_many(self, jobs):
        jobs = [(program, list(cases)) for program, cases in jobs]
        self.calls.append([(program, len(cases)) for program, cases in jobs])
        return self._passed_on(self.sandbox.grade_many, jobs, BROKEN)

    def outputs_many(self, jobs):
        jobs = list(jobs)
        self.solved.append([program for program, _ in jobs])
        return self._passed_on(self.sandbox.outputs_many, jobs, Output(failure=BROKEN))

    def _passed_on(self, run, jobs, error):
        whole = iter(run([job for job in jobs if self.broken not in job[0].source]))
        return [[error] * len(job[1]) if self.broken in job[0].source else next(whole) for job in jobs]


def task_on(tmp_path, rows, name="rows.jsonl", kind=CodeTask, **settings):
    """A task on a file of rows, and a sandbox that records its jobs."""
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = kind(data=str(path), **settings)
    task.sandbox = task.patient = WatchedSandbox()
    return task


def only(task, split="test"):
    (problem,) = task.problems(split)
    return problem


def prepared(task, split="test"):
    problems = task.problems(split)
    task.prepare(problems)
    return problems


def passes(task, problem):
    return list(task.validate([problem])) == [None]

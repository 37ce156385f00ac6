"""Scoring in processes: in parallel, within a limit, and whatever a scorer does."""

import time

import pytest

from vpo.search.judge import Item, Judge, Source, verdict

TASK = """
import os, time
from dataclasses import dataclass
from vpo.tasks import Objective, Task

@dataclass(frozen=True)
class Word:
    id: str

class Wild(Task):
    name, summary = "wild", "does what it is told"
    objectives = (Objective("length", "length"), Objective("one", "one"))
    weights = (0.5, 0.5)
    def problems(self, split="test", *, count=None):
        return [Word(f"w{n}") for n in range(3 if count is None else count)]
    def question(self, problem):
        return [{"role": "user", "content": problem.id}]
    def score(self, problem, answer):
        if answer == "hang":
            time.sleep(60)
        if answer == "die":
            os._exit(3)
        if answer == "raise":
            raise RuntimeError("told to")
        return len(answer) / 10, 1.0
"""


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "wild.py"
    file.write_text(TASK)
    return Source(str(file), {}, "test", None)


def scored(judge, *answers):
    items = [Item(number, "w1", [answer, None]) for number, answer in enumerate(answers)]
    return {item.number: found for item, found in judge.score(items)}


@pytest.mark.parametrize("processes", [0, 2])
def test_every_item_is_scored_once(source, processes):
    judge = Judge(source, processes, 30)
    try:
        found = scored(judge, *("a" * (n % 10) for n in range(100)))
        assert len(found) == 100
        for number, rows in found.items():
            assert rows == [pytest.approx((number % 10 / 10, 1.0)), (0.0, 0.0)]
        assert scored(judge, "ab") == {0: [pytest.approx((0.2, 1.0)), (0.0, 0.0)]}  # again, by the same processes
        assert list(judge.score([])) == []
    finally:
        judge.close()


def test_what_hangs_dies_or_raises_costs_itself_alone(source):
    judge = Judge(source, 2, 1.0)
    try:
        began = time.monotonic()
        found = scored(judge, "a", "hang", "b", "die", "c", "raise", "d", "die", "hang", "e")
        assert time.monotonic() - began < 50
        failed = {number: text for number, text in found.items() if isinstance(text, str)}
        assert failed == {
            1: "not scored within 1 s",
            3: "the process that scored it died",
            5: "RuntimeError: told to",
            7: "the process that scored it died",
            8: "not scored within 1 s",
        }
        assert all(found[number][0][1] == 1.0 for number in (0, 2, 4, 6, 9))
    finally:
        judge.close()


def test_in_this_process_a_scorer_may_raise(source):
    task, problems = source.load()
    assert verdict(task, problems, Item(0, "w0", ["raise"])) == "RuntimeError: told to"


def test_settings_are_checked(source):
    with pytest.raises(ValueError, match="processes must be 0 or more, not -1"):
        Judge(source, -1, 1)
    with pytest.raises(ValueError, match="limit must be greater than 0 and finite, not 0"):
        Judge(source, 0, 0)

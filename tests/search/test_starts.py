"""Answers that a task starts from, and answers that are changes to their parent."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from tests.endpoint import endpoint
from vpo.search.config import SearchConfig
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.result import read_result
from vpo.search.run import search_into
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

TASK = """
from dataclasses import dataclass
from vpo.tasks import Objective, Task

@dataclass(frozen=True)
class Word:
    id: str

class Grow(Task):
    name, summary = "grow", "a word that grows: an answer is what comes behind its parent"
    objectives = (Objective("long", "long"), Objective("a", "share of a"))
    weights = (1.0, 0.0)
    repairs = True
    def problems(self, split="test", *, count=None):
        return [Word("short"), Word("done"), Word("none")][:count]
    def question(self, problem):
        return [{"role": "user", "content": problem.id}]
    def starts(self, problem):
        return {"short": ["ab", "b"], "done": ["abcdefghij"], "none": []}[problem.id]
    def resolve(self, problem, answer, parent):
        if answer == "same":
            raise ValueError("nothing is changed")
        return (parent or "") + answer
    def score(self, problem, answer):
        return min(1.0, len(answer) / 10), answer.count("a") / len(answer)
    def solved(self, vector):
        return vector[0] >= 1
    def feedback_all(self, problems, answers, vectors):
        return [f"{answer} is too short" for answer in answers]
"""


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "grow.py"
    file.write_text(TASK)
    with endpoint(answer) as (address, _):
        yield SearchConfig(
            model="m", endpoint=address, task=str(file), answers=1, iterations=8, processes=0,
            operators={"fresh": 0.2, "repair": 0.8}, per_iteration=2,
        )  # fmt: skip


def answer(request, number):
    prompt = request["messages"][-1]["content"]
    return f"<answer>{'same' if request['seed'] % 4 == 0 else 'ac' if 'is too short' in prompt else 'x'}</answer>"


def rows(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_a_search_begins_with_the_starts_which_cost_nothing(config, tmp_path):
    result = search_into(tmp_path / "s", config)
    candidates = [row for row in rows(tmp_path / "s", CANDIDATES) if row["iteration"] == -1]
    assert [(row["case"], row["number"], row["answer"], row["operator"]) for row in candidates] == [
        ("short own", 0, "ab", "start"),
        ("short own", 1, "b", "start"),
        ("done own", 0, "abcdefghij", "start"),
    ]
    spent = dict(zip(result.cases, zip(*(result.spent[unit] for unit in result.spent), strict=True), strict=True))
    assert spent["done own"] == (0, 0, 0, 0)
    assert result.solved_at["iterations"][1] == 0
    generations = [row for row in rows(tmp_path / "s", GENERATIONS) if row["case"] == "short own"]
    assert spent["short own"][2] == len(generations) - 2
    assert [row["number"] for row in rows(tmp_path / "s", GENERATIONS)] == list(
        range(len(rows(tmp_path / "s", GENERATIONS)))
    )


def test_answers_are_changes_to_their_parents(config, tmp_path):
    search_into(tmp_path / "s", config)
    candidates = [row for row in rows(tmp_path / "s", CANDIDATES) if row["case"] == "short own"]
    changed = [row for row in candidates if row["operator"] == "repair" and row["failure"] is None]
    assert changed
    for row in changed:
        assert row["answer"] == candidates[row["parent"]]["answer"] + "ac"
        assert row["feedback"] == ("" if row["solved"] else f"{row['answer']} is too short")
    refused = [row for row in candidates if row["failure"]]
    assert {(row["answer"], row["failure"]) for row in refused} == {("same", "nothing is changed")}
    fresh = [row for row in candidates if row["operator"] == "fresh" and row["failure"] is None]
    assert {row["answer"] for row in fresh} == {"x"}


@pytest.mark.parametrize("kept", [0, 1, 3, 5])
def test_a_search_with_starts_is_resumed_from_any_line(config, kept, tmp_path):
    whole = search_into(tmp_path / "whole", config)
    cut = tmp_path / "cut"
    cut.mkdir()
    for name in ("search.json", GENERATIONS, CANDIDATES):
        lines = (tmp_path / "whole" / name).read_text().splitlines(keepends=True)
        (cut / name).write_text(
            "".join(lines if name == "search.json" else lines[: kept if name == CANDIDATES else kept + 3])
        )
    again = search_into(cut, config)
    assert {unit: list(each) for unit, each in again.spent.items()} == {
        unit: list(each) for unit, each in whole.spent.items()
    }
    for name in (GENERATIONS, CANDIDATES):
        key = lambda row: (row["case"], row["number"])  # noqa: E731
        assert sorted(rows(cut, name), key=key) == sorted(rows(tmp_path / "whole", name), key=key)
    assert read_result(cut).solved == whole.solved


def test_a_log_of_a_task_that_had_no_starts_is_continued(config, tmp_path):
    file = tmp_path / "grow.py"
    file.write_text(TASK.replace("return {", "return [] and {"))
    search_into(tmp_path / "s", replace(config, iterations=2))
    file.write_text(TASK)
    again = search_into(tmp_path / "s", replace(config, iterations=4))
    assert again.spent["iterations"].max() == 4
    assert not [row for row in rows(tmp_path / "s", CANDIDATES) if row["operator"] == "start"]


def test_what_may_be_a_change_is_not_continued(config, tmp_path):
    with pytest.raises(
        InputError, match="operator branch continues the text of an answer, and one of task grow may be"
    ):
        search_into(tmp_path / "s", replace(config, operators={"branch": 1.0}))

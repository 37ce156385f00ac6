"""`vpo search --strategy openevolve`: OpenEvolve on the problems of a task."""

import json

import pytest

pytest.importorskip("openevolve")

from tests.search.endpoint import endpoint
from vpo.answers import write
from vpo.search.log import CANDIDATES, GENERATIONS
from vpo.search.openevolve import evaluator
from vpo.search.run import Request, search_into
from vpo.tasks.maze import MazeTask

TASK = MazeTask(size=7)
MAZES = TASK.problems("test", count=2)


def request(address, **changes):
    return Request(
        **{
            **{"model": "m", "endpoint": address, "strategy": "openevolve", "task": "maze", "answers": 3},
            **{"task_settings": {"size": 7}, "count": 1, "iterations": 4, "conditions": ("completion>=1",)},
            **{"features": ("gold", "diamond"), "limit": 20.0, **changes},
        }
    )


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_openevolve_searches_the_cases_of_a_task(tmp_path):
    best = TASK.gold(MAZES[0])

    def answer(asked, number):
        text = asked["messages"][-1]["content"]
        assert "What counts now is: completion>=1" in text
        assert "Give 3 different answers" in text
        assert TASK.question(MAZES[0])[0]["content"] in text
        return write([best[: number + 1], best[:-1], best if number >= 2 else "nonsense"])

    folder = tmp_path / "a"
    with endpoint(answer) as (address, seen):
        outcome = search_into(folder, request(address))
        assert len(seen) == 4
        again = search_into(folder, request(address))
        assert len(seen) == 4  # nothing is done twice
    assert outcome.solved == again.solved == {f"{MAZES[0].id} completion>=1"}
    assert outcome.solved_at["iterations"].tolist() == [3]
    assert outcome.solved_at["answers"].tolist() == [9]
    generations, candidates = lines(folder, GENERATIONS), lines(folder, CANDIDATES)
    assert [row["iteration"] for row in generations] == [0, 1, 2, 3]
    assert {row["operator"] for row in generations} == {"openevolve"}
    assert [row["tokens"] for row in generations] == [7] * 4
    for row in candidates:
        if row["answer"] is not None:
            assert row["scores"] == pytest.approx(TASK.score(MAZES[0], row["answer"]))
    config = json.loads((folder / "openevolve" / "0" / "config.yaml").read_text())
    assert config["database"]["feature_dimensions"] == ["gold", "diamond"]


def test_a_search_that_was_cut_off_goes_on_from_the_checkpoint(tmp_path):
    with endpoint(lambda asked, number: write(["U" * (number + 1), "D" * (number + 1), "L"])) as (address, seen):
        short = tmp_path / "a"
        search_into(short, request(address, iterations=2))
        outcome = search_into(short, request(address, iterations=3))
        assert len(seen) == 3
        for name in (GENERATIONS, CANDIDATES, "ended.json"):
            (short / name).unlink()  # as if it had been killed before it was read back
        assert search_into(short, request(address, iterations=3)).cases == outcome.cases
        assert len(seen) == 3
    assert outcome.spent["generations"].tolist() == [3]


def test_an_endpoint_that_is_down_is_one_error(tmp_path):
    with pytest.raises(ValueError, match=r"OpenEvolve made nothing of http://127\.0\.0\.1:9/v1: LLM generation failed"):
        search_into(tmp_path / "a", request("http://127.0.0.1:9/v1", iterations=1))


def test_the_evaluator_gives_every_metric_whatever_the_scorer_does(tmp_path):
    (tmp_path / "task.py").write_text(
        "from vpo.tasks.maze import MazeTask\n"
        "class Bad(MazeTask):\n"
        "    name = 'bad'\n"
        "    def score(self, problem, answer):\n"
        "        if 'X' in answer: raise RuntimeError('told to')\n"
        "        return super().score(problem, answer)\n"
    )
    source = {"task": str(tmp_path / "task.py"), "settings": {"size": 7}, "split": "test", "count": 1}
    source["goals"] = {"targets": ["gold=1"]}
    told = {"source": source, "problem": MAZES[0].id, "goal": "gold=1", "limit": 20}
    evaluate = evaluator(json.dumps(told))
    program = tmp_path / "program.txt"
    program.write_text(TASK.gold(MAZES[0]))
    found = evaluate(str(program))
    scores = TASK.score(MAZES[0], program.read_text())
    assert found == pytest.approx(
        {
            **dict(zip(TASK.names, scores, strict=True)),
            **{"combined_score": scores[1], "failed": 0.0, "solved": found["solved"]},
        }
    )
    program.write_text("X")
    failed = evaluate(str(program))
    assert failed.keys() == found.keys()
    assert failed["failed"] == 1.0
    assert failed["combined_score"] == 0.0

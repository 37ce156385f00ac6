"""The tasks on real data, where it lies beside the project; skipped elsewhere."""

import gzip
import json
from pathlib import Path

import pytest

from vpo.errors import InputError
from vpo.tasks.code import CodeTask
from vpo.tasks.eureqa import LETTERS, EureqaProblem, EureqaTask
from vpo.tasks.musique import MusiqueTask
from vpo.tasks.toolrl import ToolrlTask

DATA = Path(__file__).parents[3] / "shared" / "data"


def need(name):
    if not (DATA / name).exists():
        pytest.skip(f"shared/data/{name} is not here")
    return str(DATA / name)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("toolrl/test.parquet", 80),
        ("toolrl/sft400.jsonl.gz", 400),
        ("toolrl/apibank597.jsonl.gz", 597),
        ("bfcl/bfcl_v4_single_turn.jsonl.gz", 2101),
        ("sealtools/queries.jsonl.gz", 2054),
    ],
)
def test_gold_tool_calls_score_one(name, rows):
    task = ToolrlTask(data=need(name))
    problems = task.problems("test")
    assert len(problems) == rows
    assert [flaw for flaw in task.validate(problems) if flaw is not None] == []


@pytest.mark.parametrize(
    "name", ["musique/train100_with_paragraphs.jsonl.gz", "musique/dev100_with_paragraphs.jsonl.gz"]
)
def test_gold_musique_answers_score_one(name):
    task = MusiqueTask(data=need(name))
    problems = task.problems("train" if "train" in name else "dev")
    assert len(problems) == 100
    assert [flaw for flaw in task.validate(problems) if flaw is not None] == []
    # A gold answer that is an alias scores the same.
    for problem in problems:
        for alias in problem.gold:
            answer = f"<support>{problem.hops}</support><answer>{alias}</answer>"
            assert task.score(problem, answer) == (1, 1, 1, 1, 1)


def test_musique_rows_without_paragraphs_are_refused():
    with pytest.raises(ValueError, match=r"dev2417_labels_no_paragraphs.jsonl.gz:1: paragraphs must be list"):
        MusiqueTask(data=need("musique/dev2417_labels_no_paragraphs.jsonl.gz")).problems("dev")


def test_entity_chains_run_through_the_eureqa_scorer():
    task = EureqaTask()
    with gzip.open(need("entity_chains/musique_linear_3_4hop.jsonl.gz"), "rt") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 814
    wrong = []
    for row in rows:
        entities = tuple(row["chain_entities"])
        problem = EureqaProblem(row["id"], row["question"], LETTERS[: len(entities)], entities)
        gold = task.gold(problem)
        # Spelt as in an encyclopedia's address, with an article and in capitals, a name is the same.
        respelt = gold.replace(" ", "_").replace(":_", ": The ").upper()
        if task.score(problem, gold) != (1,) * 5 or task.score(problem, respelt) != (1,) * 5:
            wrong.append((row["id"], gold))
        # Naming the chain in the wrong order earns only the places that happen to agree.
        turned = task.gold(EureqaProblem(row["id"], "", problem.masks, entities[1:] + entities[:1]))
        assert sum(task.score(problem, turned)) < 5
    assert wrong == []


def code_task(name):
    task = CodeTask(data=need(f"code/{name}.jsonl.gz"))
    try:
        assert task.sandbox
    except InputError as error:
        pytest.skip(str(error))
    return task


@pytest.mark.filterwarnings("ignore")  # of escapes that the solutions have wrong
@pytest.mark.parametrize(
    ("name", "split", "rows", "tests", "weak"),
    [("humaneval", "test", 164, 1133, 9), ("mbpp974", "all", 974, 2938, 18)],
)
def test_solutions_pass_the_asserts_that_they_come_with(name, split, rows, tests, weak):
    task = code_task(name)
    problems = task.problems(split)
    checks = [check for problem in problems for check in problem.checks + problem.hidden]
    assert (len(problems), len(checks), sum(check.weak for check in checks)) == (rows, tests, weak)
    assert [flaw for flaw in task.validate(problems) if flaw is not None] == []


@pytest.mark.parametrize("name", ["humanevalplus", "mbppplus"])
def test_solutions_agree_with_the_outputs_that_were_made_of_them(name):
    task = code_task(name)
    problems = task.problems(count=10)
    assert {problem.left_out for problem in problems} == {()}
    assert [flaw for flaw in task.validate(problems) if flaw is not None] == []


def test_contests_load_and_run():
    task = code_task("codecontests100_stdin")
    problems = task.problems()
    assert len(problems) == 100
    assert max(len(problem.checks) for problem in problems) == 16
    assert max(len(problem.hidden) for problem in problems) > 50
    assert task.score_all(problems, ["print()"] * 100) == [(0.0,) * len(problem.checks) for problem in problems]

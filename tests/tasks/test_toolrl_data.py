"""Rows of ToolRL, BFCL and Seal-Tools as problems."""

import json

import pytest

from tests.tasks.rows import toolrl_row
from tests.tasks.tool_answers import call, calls
from vpo.tasks.toolrl import Call, ToolrlTask
from vpo.tasks.toolrl.data import from_bfcl, from_rlla

TASK = ToolrlTask()


def test_a_broken_gold_call_is_refused_and_never_matched():
    gold = '<think>t</think><tool_call>\n{"name": "w",\n "parameters": {"x": 1}\n</tool_call>'
    with pytest.raises(ValueError, match="here: the gold answer must hold calls, one a line, or a response"):
        from_rlla(toolrl_row(gold), "p", "here")


PROPERTIES = {"mass": {"type": "float"}, "unit": {"type": "string"}, "where": {"type": "dict"}}


def bfcl_row(**more):
    return {
        "question": [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Density?"}]],
        "function": [{"name": "density", "description": "d", "parameters": {"properties": PROPERTIES}}],
        "ground_truth": [{"density": {"mass": [45, 45.5], "unit": ["", "kg"], "where": [{"city": ["Rome", "Roma"]}]}}],
        **more,
    }


def test_bfcl_lists_the_right_values_and_optional_arguments():
    problem = from_bfcl(bfcl_row(), "b", "here")
    (gold,) = problem.calls
    assert gold.parameters == {"mass": 45, "where": {"city": "Rome"}}
    assert problem.messages[0]["content"].startswith("Be brief.")
    assert "Name: density" in problem.messages[0]["content"]

    def score(**parameters):
        return TASK.score(problem, calls(call("density", **parameters)))

    rome, roma = {"city": "Rome"}, {"city": "Roma"}
    assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)
    assert score(mass=45.5, where=roma) == (1, 1, 1, 1)
    assert score(mass=45, where=rome, unit="kg") == (1, 1, 1, 1)  # optional, and right
    assert score(mass=45, where=rome, unit="banana") == pytest.approx((1, 1, 1, 2 / 3))  # optional, and wrong
    assert score(mass=45, where=rome, color="red") == pytest.approx((1, 1, 4 / 5, 1))  # not an argument


def test_an_argument_for_which_bfcl_lists_no_value_must_be_omitted():
    truth = {"density": {"mass": [45], "unit": [], "where": [{"city": ["Rome"], "zip": []}]}}
    problem = from_bfcl(bfcl_row(ground_truth=[truth]), "b", "here")
    assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)
    answer = calls(call("density", mass=45, where={"city": "Rome"}, unit="kg"))
    assert TASK.score(problem, answer) == pytest.approx((1, 1, 1, 2 / 3))


def test_where_no_call_is_due_the_gold_answer_is_words():
    problem = from_bfcl(bfcl_row(ground_truth=[]), "b", "here")
    assert TASK.score(problem, problem.gold) == (1, 1, 1, 1)


def test_calls_are_not_read_from_parquet(tmp_path):
    import pyarrow
    import pyarrow.parquet

    rows = [
        {"system": "s", "user": "u", "gold_calls": [{"name": "f", "parameters": parameters}]}
        for parameters in ({"city": "Rome"}, {"song": "x"})
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "test.parquet")
    with pytest.raises(ValueError, match="gold_calls cannot be read from Parquet, which fills arguments with nulls"):
        ToolrlTask(data=str(tmp_path)).problems()


def test_rows_are_read_from_files(tmp_path):
    gold = calls(call("weather", city="Rome", days=1))
    rows = [
        toolrl_row(gold),
        {"instruction": "You have tools.", "input": "Weather?", "output": gold},
        {"id": "own", "system": "s", "user": "u", "gold_calls": [{"name": "weather", "parameters": {"city": "Rome"}}]},
    ]
    path = tmp_path / "test.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = ToolrlTask(data=str(tmp_path))
    problems = task.problems("test")
    assert [problem.id for problem in problems] == ["test-0", "test-1", "own"]
    assert problems[1].calls == (Call("weather", {"city": "Rome", "days": 1}),)
    assert list(task.validate(problems)) == [None, None, None]
    assert task.ask(problems[0])[0]["role"] == "system"
    assert "<answer_2>" in task.ask(problems[0], 2)[-1]["content"]
    assert len(task.problems("test", count=2)) == 2
    with pytest.raises(ValueError, match=r"count must lie in 1\.\.3, the problems of the split, not 4"):
        task.problems("test", count=4)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"x": 1}, "test.jsonl:1: a row of toolrl must have the fields of ToolRL .* not x"),
        (
            toolrl_row("nothing"),
            "test.jsonl:1: the gold answer must hold calls, one a line, or a response, not 'nothing'",
        ),
        (
            {**toolrl_row("x"), "prompt": [{"role": "user"}]},
            "test.jsonl:1: the field 'content' is missing; the row has role",
        ),
        ({**toolrl_row("x"), "prompt": []}, "test.jsonl:1: the prompt must hold 1 or more messages, not 0"),
        (bfcl_row(question=[[], []]), "test.jsonl:1: question must hold one turn, not 2"),
        (bfcl_row(ground_truth=["density"]), "test.jsonl:1: item 0: ground_truth must be dict, not str"),
        (bfcl_row(ground_truth=[{"density": ["mass"]}]), "test.jsonl:1: density must be dict, not list"),
        (bfcl_row(ground_truth=[{"density": {"mass": 45}}]), "test.jsonl:1: mass must be list, not int"),
        (bfcl_row(ground_truth=[{"a": {}, "b": {}}]), "a call of ground_truth must name one tool, not 2"),
        (bfcl_row(function=[{"name": "f"}]), "test.jsonl:1: the field 'description' is missing; the row has name"),
        (
            {"system": "s", "user": "u", "gold_calls": [{"name": "f"}]},
            "test.jsonl:1: the field 'parameters' is missing; the row has name",
        ),
        ({"system": "s", "user": "u", "gold_calls": [], "gold": 5}, "test.jsonl:1: gold must be str, not int"),
        (toolrl_row(None), "test.jsonl:1: ground_truth must be str, not NoneType"),
        ({"query": "q", "id": "s", "calling": []}, "rows of Seal-Tools need tools.jsonl in the same folder"),
    ],
)
def test_bad_rows_are_named(tmp_path, row, message):
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ValueError, match=message):
        ToolrlTask(data=str(tmp_path)).problems()

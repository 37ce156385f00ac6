"""Rows of every data set of code, as published, and rows that are not."""

import pytest

from tests.tasks import code_rows
from tests.tasks.watched import WatchedSandbox, only, passes, prepared, task_on
from vpo.tasks.code import CodeTask, evalplus
from vpo.util.errors import InputError

# EvalPlus


def test_outputs_of_mbpp_plus_are_those_of_the_solution(tmp_path):
    task = task_on(tmp_path, [code_rows.mbppplus_row()])
    problem = only(task)
    assert len(problem.checks) == 16
    assert len(problem.hidden) == 26
    assert all(check.case.expected == sum(check.case.input) for check in problem.checks + problem.hidden)
    assert "assert add(1, 2) == 3" in problem.statement
    assert '"""' not in problem.statement
    assert passes(task, problem)


def test_numbers_of_evalplus_have_a_tolerance(tmp_path):
    task = task_on(tmp_path, [code_rows.humanevalplus_row()])
    problem = only(task)
    assert {check.case.atol for check in problem.checks} == {1e-6}
    assert passes(task, problem)
    assert task.score(problem, "def half(x):\n    return x / 2 + 1e-7") == (1, 1)
    assert task.score(problem, "def half(x):\n    return x / 2 + 1e-5") == (0, 0)
    looser = only(task_on(tmp_path, [code_rows.humanevalplus_row(atol=0.01)]))
    assert {check.case.atol for check in looser.checks} == {0.01}


def test_the_prompt_of_humaneval_is_put_before_the_answer(tmp_path):
    row = code_rows.humanevalplus_row(
        prompt='def two():\n    return 2\n\n\ndef half(x):\n    """Halve."""\n',
        canonical_solution="    return x / two()\n",
    )
    task = task_on(tmp_path, [row])
    problem = only(task)
    assert passes(task, problem)
    assert task.score(problem, "def half(x):\n    return x / two()") == (1, 1)
    assert task.score(problem, "pass") == (0, 0)


def test_an_input_on_which_the_solution_fails_is_excluded(tmp_path):
    row = code_rows.mbppplus_row(base_input=[[1, 2], ["a", 2]], plus_input={})
    problem = only(task_on(tmp_path, [row]))
    assert len(problem.checks) == 1
    (why,) = problem.excluded
    assert why.startswith("input 1: exception: TypeError")
    with pytest.raises(ValueError, match="Mbpp/9001: the solution fails on every input; input 0: exception: TypeError"):
        prepared(task_on(tmp_path, [code_rows.mbppplus_row(base_input=[["a", 2]], plus_input=[])]))
    with pytest.raises(ValueError, match="Mbpp/9001: the sandbox could not run the solution"):
        prepared(task_on(tmp_path, [code_rows.mbppplus_row(canonical_solution="# BROKEN")]))


@pytest.mark.parametrize(
    ("number", "values", "arguments"),
    [
        (1, [[1, [2]], 3], ([1, [2]], 3)),
        (2, [[1], [2]], ((1,), (2,))),
        (63, [[[1, 2], [3]]], ([(1, 2), (3,)],)),
        (75, [[[1], [2]], 5], ([(1,), (2,)], 5)),
        (106, [[1], [2]], ([1], (2,))),
        (115, [[[1, 1], [], 5]], ([{1}, {}, {}],)),
        (124, ["0", "1j"], (0.0, 1j)),
        (250, [[1], 2], ((1,), 2)),
        (259, [[[1], [2]], [[3]]], (((1,), (2,)), ((3,),))),
        (278, [[1, [2]]], ((1, (2,)),)),
        (307, [[1], 2, 3], ((1,), 2, 3)),
        (722, [{"a": [1, 2]}, 3, 4], ({"a": (1, 2)}, 3, 4)),
        (252, ["(1+2j)"], (1 + 2j,)),
        (580, [[1, [2, [3]]]], ((1, (2, (3,))),)),
    ],
)
def test_inputs_of_mbpp_plus_have_their_types_restored(number, values, arguments):
    restored = evalplus.restorer(number)(values)
    assert restored == arguments
    assert repr(restored) == repr(arguments)  # 1 is True to ==, and () is not []


def test_results_that_are_sets_or_matches(tmp_path):
    sets = code_rows.mbppplus_row(
        entry_point="Diff",
        canonical_solution="def Diff(a, b):\n    return [x for x in a if x not in b]",
        base_input=[[[1, 2], [3]]],
        plus_input=[],
    )
    task = task_on(tmp_path, [sets])
    assert task.score(only(task), "def Diff(a, b):\n    return [2, 1, 1]") == (1,)
    row = code_rows.mbppplus_row(
        entry_point="check_str",
        canonical_solution="import re\ndef check_str(text):\n    return re.match('a', text)",
        base_input=[["abc"], ["xyz"]],
        plus_input=[],
    )
    task = task_on(tmp_path, [row])
    problem = only(task)
    assert passes(task, problem)
    assert task.score(problem, "def check_str(text):\n    return text[0] == 'a'") == (1, 1)
    assert task.score(problem, "def check_str(text):\n    return text[0] == 'x'") == (0, 0)
    assert task.score(problem, "def check_str(text):\n    return text") == (1, 0)


def test_any_zero_is_one(tmp_path):
    row = code_rows.humanevalplus_row(
        prompt="def find_zero(xs: list):\n    pass\n",
        entry_point="find_zero",
        canonical_solution="\ndef find_zero(xs):\n    return -1.0",
        base_input=[[[-1, 0, 1]]],
    )
    task = task_on(tmp_path, [row])
    problem = only(task)
    assert task.score(problem, "def find_zero(xs):\n    return 1.0") == (1,)
    assert task.score(problem, "def find_zero(xs):\n    return 0.5") == (0,)


# Asserts


def test_a_row_of_mbpp(tmp_path):
    task = task_on(tmp_path, [code_rows.mbpp_row()])
    problem = only(task, "train")
    assert problem.id == "Mbpp/601"
    assert problem.entry == "order"
    assert problem.starter == "def order(items, up=True):"
    assert passes(task, problem)
    assert not any(check.wrapper for check in problem.checks)


def test_the_published_split_of_mbpp(tmp_path):
    task = task_on(tmp_path, [code_rows.mbpp_row(number) for number in (5, 11, 510, 511, 601, 974)])
    assert [problem.id for problem in task.problems("train")] == ["Mbpp/601", "Mbpp/974"]
    assert [problem.id for problem in task.problems("test")] == ["Mbpp/11", "Mbpp/510"]
    assert len(task.problems("all")) == 6
    assert len(task.problems("all", count=2)) == 2
    for count in (7, 0, -1):
        with pytest.raises(ValueError, match=rf"count must lie in 1\.\.6, the problems of the split, not {count}"):
            task.problems("all", count=count)
    with pytest.raises(ValueError, match="no split 'dev' in code on MBPP"):
        task.problems("dev")


@pytest.mark.parametrize(
    ("test", "right", "wrong", "kind"),
    [
        ("assert f(2) == 4", "4", "5", "plain"),
        ("assert f(2) == 3 * 19, 'with a word on it'", "57", "4", "plain"),
        ("assert 4 == f(2)", "4", "5", "plain"),
        ("assert f(2) is None", "None", "0", "plain"),
        ("assert f([1, (2, 'a')], {'k': {-1.5}}) == (1,)", "(1,)", "(2,)", "plain"),
        ("assert math.isclose(f(2), 0.5, rel_tol=0.01)", "0.501", "0.51", "plain"),
        ("assert abs(f(2) - 2.0 / 4) < 1e-3", "0.5004", "0.502", "plain"),
        ("assert f(2)", "[1]", "[]", "wrapper"),
        ("assert not f(2)", "''", "'x'", "wrapper"),
        ("assert set(f(2)) == set((3, 3, 4))", "[4, 3]", "[4]", "wrapper"),
        ("assert sorted(f([2])) == [1, 2]", "[2, 1]", "[2]", "wrapper"),
        ("assert round(f(2), 1) == 0.5", "0.51", "0.6", "wrapper"),
    ],
)
def test_asserts_of_every_shape(tmp_path, test, right, wrong, kind):
    def program(value):
        before = "import itertools, math, sys\ncounter = itertools.count()\ndef make():\n    return 3\n"
        return f"{before}def f(x, *more, **named):\n    return {value}\n"

    row = code_rows.mbpp_row(code=program(right), test_list=[test])
    task = task_on(tmp_path, [row])
    problem = only(task, "train")
    (check,) = problem.checks
    assert bool(check.wrapper) == (kind == "wrapper")
    assert passes(task, problem)
    assert task.score(problem, program(wrong)) == (0,)


# These can only be compared inside the sandbox, where the program could forge the result.
YES = "class Yes:\n    __eq__ = __gt__ = lambda self, other: True\n\ndef f(*args, **named):\n    return Yes()\n"


@pytest.mark.parametrize(
    "test",
    [
        "assert f(2) == f(1 + 1)",
        "assert f(make()) == 4",
        "assert f(x=2) == 4",
        "assert f(2) > 3",
        "assert f(2) == sys.maxsize",
    ],
)
def test_asserts_that_cannot_be_compared_outside_the_sandbox_are_excluded(tmp_path, test):
    row = code_rows.mbpp_row(code="def f(x):\n    return 4\n", test_list=["assert f(2) == 4", test])
    task = task_on(tmp_path, [row, code_rows.mbpp_row(602, code=row["code"], test_list=[test])])
    problem = only(task, "train")  # the other one has no test that is left
    assert problem.id == "Mbpp/601"
    assert problem.excluded == (test,)
    assert len(problem.checks + problem.hidden) == 1
    assert passes(task, problem)
    assert task.score(problem, YES) == (0,)


def test_a_row_of_humaneval(tmp_path):
    body = (
        "    assert candidate(2) == 1.0, 'a word'\n    assert True, 'nothing is said'\n"
        "    for x in range(3):\n        assert candidate(x) == x / 2\n"
    )
    task = task_on(tmp_path, [code_rows.humaneval_row(body)])
    problem = only(task)
    assert problem.excluded == ("statements between its asserts",)
    assert passes(task, problem)
    assert task.score(problem, "def half(x):\n    return 2.0") == (0,)


@pytest.mark.parametrize("row", [code_rows.leetcode_row(), code_rows.short_leetcode_row()])
def test_a_row_of_leetcode(tmp_path, row):
    task = task_on(tmp_path, [row])
    (problem,) = task.problems("train")
    assert problem.excluded == ("assert candidate(list_node([1]), 1) == 1",)
    assert [check.case.input for check in problem.checks + problem.hidden] == [([3, 1], 1), ([3, 1], 2), ([4, 5], 1)]
    program = f"{code_rows.LEETCODE}return items[k - 1] if items != [4, 5] else []"
    assert task.score(problem, program) == (1, 1, 1)
    assert task.score(problem, program.replace("k - 1", "0")) == (1, 0, 1)
    question = task.ask(problem)[-1]["content"]
    assert question.startswith("Return the k-th item.\n\nWrite it in Python, as the method Solution.pick.")
    assert f"```python\n{code_rows.LEETCODE.rstrip()}\n```" in question
    assert "self-contained code snippet" not in question


def test_parameters_out_of_order_exclude_an_assert(tmp_path):
    body = "    assert candidate(k = 1, items = [3]) == 3\n    assert candidate([3], 1) == 3\n"
    (problem,) = task_on(tmp_path, [code_rows.leetcode_row(body)]).problems("train")
    assert problem.excluded == ("assert candidate(k=1, items=[3]) == 3",)


def test_problems_of_another_data_set_are_left_out(tmp_path):
    (tmp_path / "plus").mkdir()
    task_on(tmp_path / "plus", [code_rows.mbppplus_row(task_id="Mbpp/602")])
    rows = [code_rows.mbpp_row(number) for number in (601, 602, 603)]
    settings = {"data": task_on(tmp_path, rows).data, "exclude": str(tmp_path / "plus")}
    assert [problem.id for problem in CodeTask(**settings).problems("train")] == ["Mbpp/601", "Mbpp/603"]
    evaluated = CodeTask(data=settings["exclude"], exclude=settings["exclude"])  # with the settings of training
    assert [problem.id for problem in evaluated.problems("test")] == ["Mbpp/602"]
    with pytest.raises(InputError, match="no such file or folder"):
        CodeTask(data=settings["data"], exclude=str(tmp_path / "nowhere")).problems("train")


# Rows that are not as published


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (code_rows.mbppplus_row(base_input=5), "base_input must be list, not int"),
        (code_rows.mbppplus_row(base_input=[], plus_input=[]), "must hold 1 or more inputs, not 0"),
        (code_rows.mbppplus_row(task_id="Mbpp/x"), "task_id must end in a number"),
        (code_rows.mbppplus_row(task_id="Mbpp/2", base_input=[[1]]), "input 0 does not fit this task"),
        (code_rows.humanevalplus_row(atol="0"), "atol must be int or float, not str"),
        (code_rows.mbpp_row(test_list=["x = 1"]), "a test must be an assert, not 'x = 1'"),
        (code_rows.mbpp_row(test_list=["assert ("]), "a test must be an assert"),
        (code_rows.mbpp_row(test_list=["assert True"]), "code must define the function that the tests call"),
        (code_rows.mbpp_row(code="def"), "code must define the function"),
        (code_rows.mbpp_row(task_id="1"), "task_id must be int, not str"),
        (code_rows.humaneval_row(test="assert x"), "test must define one function check of one argument"),
        (code_rows.humaneval_row("    pass\n"), "must have 1 or more tests, not 0"),
        (code_rows.leetcode_row(test="assert x"), "test must define a function check of one argument"),
        (code_rows.leetcode_row("    pass\n"), "must have 1 or more tests, not 0"),
        (code_rows.leetcode_row(entry_point="Solution().other"), "the solution must define Solution.other"),
        (code_rows.short_leetcode_row(test="def check(candidate): ..."), "the tests must call a method of Solution"),
        (code_rows.livecodebench_row(date="soon"), "contest_date must be a date, not 'soon'"),
        (code_rows.livecodebench_row(public_test_cases="{"), "public_test_cases must be JSON"),
        (code_rows.livecodebench_row(metadata="[]"), "tests must be lists, and metadata an object"),
        (code_rows.livecodebench_row(public_test_cases='[{"input": "1"}]'), "test 0 must be an object with input and"),
        (code_rows.deepcoder_row([]), "must have 1 or more tests, not 0"),
        (code_rows.deepcoder_row({"inputs": ["1"], "outputs": []}), "there are 1 inputs and 0 outputs"),
        (code_rows.deepcoder_row([{"input": 1, "output": 2}]), "must be text where no function is named"),
        (code_rows.codecontests_row(public_tests=[]), "public_tests must be dict, not list"),
        ({"question": "?"}, "no known source has rows with the fields question"),
    ],
)
def test_a_row_that_is_not_as_published_is_refused_with_its_location(tmp_path, row, message):
    split = "train" if "test_list" in row else "test"
    with pytest.raises(ValueError, match=rf"rows.jsonl:1: .*{message}"):
        task_on(tmp_path, [row]).problems(split)


def test_rows_of_evalplus_on_the_hub_have_no_inputs(tmp_path):
    row = {name: value for name, value in code_rows.mbppplus_row().items() if name != "base_input"}
    with pytest.raises(ValueError, match=r"rows.jsonl:1: the row has no base_input: use the JSONL of EvalPlus"):
        task_on(tmp_path, [row], source="mbppplus").problems()


def test_a_configuration_on_the_hub(monkeypatch):
    datasets = pytest.importorskip("datasets")
    loaded = []

    def load(repository, configuration, split):
        loaded.append((repository, configuration, split))
        return [code_rows.deepcoder_row([{"input": "1", "output": "1"}])]

    monkeypatch.setattr(datasets, "load_dataset", load)
    task = CodeTask(data="hub:some/one:taco", source="deepcoder")
    task.sandbox = task.patient = WatchedSandbox()
    assert only(task, "train").id == "one:taco:1"
    assert loaded == [("some/one", "taco", "train")]


def test_sources_are_named_where_they_cannot_be_seen(tmp_path):
    with pytest.raises(ValueError, match="data from the hub needs the setting source, one of mbppplus"):
        CodeTask(data="hub").problems()
    with pytest.raises(ValueError, match="source 'mbbp' is not known: did you mean 'mbpp'"):
        CodeTask(data="hub", source="mbbp").problems()
    with pytest.raises(ValueError, match="task code needs data: download one of mbppplus"):
        CodeTask().problems()
    with pytest.raises(ValueError, match="has no rows"):
        task_on(tmp_path, []).problems()
    with pytest.raises(ValueError, match="no split 'train' in code on HumanEval"):
        task_on(tmp_path, [code_rows.humaneval_row()]).problems("train")

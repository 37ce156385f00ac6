"""Which problem a row of completions means, for every task: ids first, and an integer is never an index."""

import json
from dataclasses import dataclass

import pytest

from tests.tasks.code_rows import humaneval_row, livecodebench_row, mbpp_row
from tests.tasks.rows import eureqa_row, musique_row, toolrl_row
from vpo import read_pool
from vpo.cli.main import main
from vpo.evaluation.problem_names import ProblemNames
from vpo.tasks import get
from vpo.util.errors import InputError


@dataclass(frozen=True)
class Named:
    id: str | int


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_data_sets_own_integer_ids_grade_their_own_problems(tmp_path, capsys):
    """MBPP's test split begins with task 11, which is at index 0: as an index, 12 would be task 23."""

    def code(number):
        return f"<answer>\n```python\ndef answer_{number}():\n    return {number}\n```\n</answer>"

    numbers = range(11, 31)
    rows = [
        mbpp_row(
            number,
            code=f"def answer_{number}():\n    return {number}",
            test_list=[f"assert answer_{number}() == {number}"],
        )
        for number in numbers
    ]
    data = write_rows(tmp_path / "mbpp.jsonl", rows)
    completions = write_rows(
        tmp_path / "completions.jsonl",
        [
            *({"problem": number, "completion": code(number)} for number in (11, 12, 30)),
            {"problem": "Mbpp/13", "completion": code(13)},
            {"problem": "14", "completion": code(14)},
            {"problem": 15.0, "completion": code(15)},
            {"index": 0, "completion": code(11)},
        ],
    )
    pool = tmp_path / "pool.jsonl"
    assert main(["score", completions, "--task", "code", "--data", data, "--out", str(pool), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solved"] == 1.0
    assert set(read_pool(pool).problems) == {f"Mbpp/{number}" for number in (11, 12, 13, 14, 15, 30)}
    write_rows(tmp_path / "completions.jsonl", [{"problem": 5, "completion": code(5)}])  # an index, and no id
    assert main(["score", completions, "--task", "code", "--data", data, "--out", str(pool)]) == 2
    assert "problem must be an id of the split, such as 'Mbpp/11', not 5" in capsys.readouterr().err


def tool_row(index):
    gold = '<think>x</think>\n<tool_call>\n{"name": "play", "parameters": {"song": "x"}}\n</tool_call>'
    return toolrl_row(gold, index)


TASKS = {
    "maze": (None, {"size": 7}),
    "musique": ([musique_row(2, f"2hop__{number}_{7 * number}") for number in range(3)], {}),
    "eureqa": ([eureqa_row(number) for number in range(8)], {}),
    "toolrl": ([tool_row(index) for index in range(3)], {}),
    "code": ([humaneval_row(task_id=f"HumanEval/{number}") for number in (7, 5, 1)], {}),
    "livecodebench": ([livecodebench_row(name) for name in ("2857", "abc301_a", "1")], {"source": "livecodebench"}),
    "gsm8k": ([{"question": "1 + 1?", "answer": "#### 2"}] * 3, {}),
    "math": ([{"problem": "$1+1$?", "answer": "2", "id": number} for number in (2, 0, 1)], {}),
    "countdown": ([{"target": 3, "nums": [1, 2]}] * 3, {}),
    "chat": ([{"prompt": "Hello?", "id": number} for number in ("2", "0", "1")], {}),
}


@pytest.mark.parametrize("name", TASKS)
def test_in_every_task_an_integer_is_the_id_of_that_number_or_refused(tmp_path, name):
    rows, settings = TASKS[name]
    if name == "chat":
        (tmp_path / "rewards.toml").write_text('[short]\nkind = "length"\nmost = 9\n')
        settings = {"prompts": write_rows(tmp_path / "rows.jsonl", rows), "rewards": str(tmp_path / "rewards.toml")}
    elif rows is not None:
        settings = {**settings, "data": write_rows(tmp_path / "test.jsonl", rows)}
    task = get("code" if name == "livecodebench" else name, **settings)
    problems = list(task.problems("train" if name == "chat" else "test"))
    names = ProblemNames(problems)
    numbers = [problem.id.rpartition("/")[2].rpartition("-")[2] for problem in problems]
    for index, problem in enumerate(problems[:20]):
        assert names.find({"problem": problem.id}) is problem
        assert names.find({"index": index}) is problem
        assert names.find({"problem": problem.id, "index": 0}) is problem  # another column of that name
    for number in range(-1, 30):
        meant = [problem for problem, tail in zip(problems, numbers, strict=True) if tail == str(number)]
        if meant:
            assert [names.find({"problem": number})] == meant
            assert [names.find({"problem": str(number)})] == meant
        else:
            with pytest.raises(InputError, match=f"such as {problems[0].id!r}, not {number}"):
                names.find({"problem": number})


def test_numbers_count_where_all_ids_have_one_prefix():
    mixed = ProblemNames([Named("a-1"), Named("b-2"), Named("3")])
    assert mixed.find({"problem": 3}).id == "3"
    for number in (1, 2, 0):
        with pytest.raises(InputError, match="must be an id of the split, such as 'a-1'"):
            mixed.find({"problem": number})
    with pytest.raises(InputError, match="must be an id"):  # 01 and 1 are the same number
        ProblemNames([Named("a-1"), Named("a-01")]).find({"problem": 1})
    integers = ProblemNames([Named(12), Named(11)])
    assert integers.find({"problem": 11}).id == integers.find({"problem": "11"}).id == 11
    with pytest.raises(InputError, match="two problems of the split have the same id"):
        ProblemNames([Named(1), Named("1")])
    for wrong in (True, [1], {"a": 1}, float("nan"), float("inf"), "None", "٣", "9" * 5000):
        with pytest.raises(InputError, match="must be an id"):
            ProblemNames([Named("a-3")]).find({"problem": wrong})

"""Rewards files, and what is said of those that are wrong."""

import pytest

from tests.rewards.small import HEADS, sample, save_classifier
from vpo.cli.main import main
from vpo.rewards.chat import ChatTask
from vpo.rewards.toml import read_rewards

GOOD = """
concurrent = 2
time_limit = 30

[short]
kind = "length"
most = 3

[polite]
kind = "function"
function = "mine.py:polite"
call_size = 8
time_limit = 5

[weights]
short = 1
polite = 3
"""
POLITE = "def polite(completions, **kwargs):\n    return [float('please' in each) for each in completions]\n"

JUDGE = "[panel]\nkind = 'judge'\nendpoint = 'http://127.0.0.1:9/v1'\nmodel = 'm'\n"
RUBRIC = "\n[panel.rubrics]\nstrict = 'Be strict.'\n"


def write(folder, text):
    (folder / "mine.py").write_text(POLITE)
    path = folder / "rewards.toml"
    path.write_text(text)
    return path


def test_a_whole_file_from_anywhere(tmp_path):
    vector = read_rewards(write(tmp_path, GOOD))
    assert vector.names == ("short", "polite")
    assert vector.weights == (0.25, 0.75)
    assert vector.concurrent == 2
    assert [(each.time_limit, each.call_size) for each in vector.limited] == [(30, None), (5, 8)]
    assert vector.score([sample("now please"), sample("a b c d")]) == [(1.0, 1.0), (pytest.approx(2 / 3), 0.0)]
    described = vector.described()
    assert described["scorers"][0] == {
        "kind": "length", "least": 0, "most": 3, "unit": "words", "objectives": ["short"],
    }  # fmt: skip
    assert described["scorers"][1]["function"] == f"{tmp_path}/mine.py:polite"


def test_models_and_reference_sets_are_relative_to_the_file(tmp_path):
    pytest.importorskip("transformers")
    save_classifier(tmp_path / "three")
    rows = "".join(f'{{"prompt": "?", "answer": "{"word " * n}"}}\n' for n in range(1, 6))
    (tmp_path / "reference.jsonl").write_text(rows)
    vector = read_rewards(
        write(
            tmp_path,
            f'[q]\nkind = "classifier"\nmodel = "three"\nheads = {HEADS}\ndevice = "cpu"\n'
            "[q.calibration]\nhelpful = {range = [-4, 4]}\nhonest = {sigmoid = true}\n"
            'harmless = {quantiles = "reference.jsonl"}\n',
        )
    )
    assert vector.names == ("helpful", "honest", "harmless")
    (scorer,) = vector.described()["scorers"]
    assert scorer["model"] == str(tmp_path / "three")
    assert len(scorer["calibration"]["harmless"]["quantiles"]) == 5
    assert vector.score([sample("word")])[0] is not None
    assert vector.counted().keys() >= {"clipped/helpful", "abstained/honest"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[short", "the file is not TOML"),
        ("", "there is no reward"),
        ("concurrent = true\n[short]\nkind = 'length'\nmost = 3", "concurrent must be an integer, not True"),
        ("concurrent = 0\n[short]\nkind = 'length'\nmost = 3", "concurrent must be"),
        ("speed = 3", "[speed] must be a table with a kind"),
        ("[short]\nmost = 3", "[short] kind None is not known: there are function, "),
        ("[short]\nkind = 'lenght'", "[short] kind 'lenght' is not known: did you mean 'length'?"),
        ("[short]\nkind = 'length'", "[short] needs the setting 'most'"),
        ("[short]\nkind = 'length'\nmots = 3", "[short] has no setting 'mots': did you mean 'most'?"),
        ("[short]\nkind = 'length'\nmost = '3'", "[short] most must be an integer, not '3'"),
        ("[short]\nkind = 'length'\nmost = 3\ncall_size = 0", "[short] call_size must be"),
        ("[polite]\nkind = 'function'\nfunction = 'mine.py:rude'", "has no function 'rude'"),
        (
            "[q]\nkind = 'classifier'\nmodel = '/nowhere'\ncalibration = {sigmoid = true}",
            "[q] no such folder: /nowhere",
        ),
        ("[q]\nkind = 'classifier'\nmodel = '/nowhere'", "[q] needs the setting 'calibration'"),
        (JUDGE, "[panel] needs the setting 'rubrics'"),
        (f"{JUDGE}concurent = 3\n{RUBRIC}", "[panel] has no setting 'concurent': did you mean 'concurrent'?"),
        (f"{JUDGE}concurrent = '3'\n{RUBRIC}", "[panel] concurrent must be an integer, not '3'"),
        (f"{JUDGE}concurrent = 0\n{RUBRIC}", "[panel] concurrent must be 1 or more, not 0"),
        (f"{JUDGE}\n[panel.rubrics]\nstrict = 3", "[panel] rubrics must be a table, not {'strict': 3}"),
        ("[short]\nkind = 'length'\nmost = 3\n[weights]\nlong = 1", "'long'"),
        ("[short]\nkind = 'length'\nmost = 3\n[weights]\nshort = 'a'", "[weights] must give each objective a number"),
    ],
)
def test_errors_are_one_line_that_names_the_file(tmp_path, capsys, text, message):
    path = write(tmp_path, text)
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Hi"}\n')
    options = ["--set", f"prompts={tmp_path}/prompts.jsonl", "--set", f"rewards={path}"]
    assert main(["tasks", "show", "chat", *options, "--split", "train"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"vpo: error: {path}: ")
    assert message in line


def test_a_missing_file_is_refused(tmp_path, capsys):
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Hi"}\n')
    with pytest.raises(ValueError, match=r"no such file: .*rewards\.toml"):
        read_rewards(tmp_path / "rewards.toml")
    assert main(["tasks", "show", "chat"]) == 2
    assert "task chat needs the setting 'prompts'" in capsys.readouterr().err


def test_prompts_for_testing_may_be_in_a_file_of_their_own(tmp_path):
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b", "id": null}\n')
    (tmp_path / "test.jsonl").write_text('{"prompt": "c"}\n{"prompt": "d", "id": "own"}\n')
    files = {name: str(tmp_path / f"{name}.jsonl") for name in ("prompts", "test")}
    task = ChatTask(rewards=str(write(tmp_path, GOOD)), **files)
    assert [problem.id for problem in task.problems("train")] == ["1", "2"]
    assert [problem.id for problem in task.problems("test")] == ["test-1", "own"]
    assert [problem.id for problem in task.problems("all")] == ["1", "2", "test-1", "own"]

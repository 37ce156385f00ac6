"""`vpo import` of any table by a mapping of its columns, and of files that are damaged or not known."""

import json
import shlex
from pathlib import Path

import pytest

from tests.evaluation.test_import import FOLDERS, WRITTEN, imported, refused
from vpo.cli.main import main
from vpo.util.row_files import write_rows

ROWS = [
    {"id": 7, "text": "a", "rewards": {"correct": 1, "short": 0.5}, "passed": True, "tests": [True, False, True]},
    {"id": 7, "text": "b", "rewards": {"correct": 0, "short": 0.75}, "passed": False, "tests": [False, False, True]},
    {"id": 8, "text": "c", "rewards": {"correct": 0, "short": 1.0}, "passed": False, "tests": [1, 0]},
]


@pytest.fixture
def table(tmp_path):
    write_rows(tmp_path / "rows.jsonl", ROWS)
    return tmp_path / "rows.jsonl"


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet"])
def test_columns_are_mapped(form, tmp_path, capsys):
    path = tmp_path / f"rows.{form}"
    write_rows(path, [{**row, "tests": list(map(bool, row["tests"]))} for row in ROWS])
    mapping = "problem=id,scores=rewards,answer=text,solved=passed"
    counts, pool = imported(tmp_path, capsys, path, "--map", mapping)
    assert counts["format"] == "table"
    assert pool.objectives == ("correct", "short")
    assert pool.problems["7"].scores_nD.tolist() == [[1, 0.5], [0, 0.75]]
    assert pool.problems["7"].answers == ("a", "b")
    assert pool.problems["7"].solved_n.tolist() == [True, False]


def test_a_list_is_a_score_for_each_test(table, tmp_path, capsys):
    _, pool = imported(tmp_path, capsys, table, "--map", "problem=id,scores=tests")
    assert pool.problems["7"].objectives == ("test_1", "test_2", "test_3")
    assert pool.problems["7"].scores_nD.tolist() == [[1, 0, 1], [0, 0, 1]]
    assert pool.problems["8"].objectives == ("test_1", "test_2")  # problems may differ in their tests
    assert main(["measure", str(tmp_path / "pool.jsonl")]) == 0


def test_columns_of_numbers_and_fields_of_objects_are_scores(table, tmp_path, capsys):
    _, pool = imported(tmp_path, capsys, table, "--map", "problem=id,scores=passed,scores=rewards.short")
    assert pool.objectives == ("passed", "rewards.short")
    assert pool.problems["7"].scores_nD.tolist() == [[1, 0.5], [0, 0.75]]


def test_a_table_with_the_names_of_a_pool_needs_no_mapping(tmp_path, capsys):
    rows = [
        {"problem": "p", "generation": g, "position": i, "scores": {"a": g / 2, "b": 0}, "tokens": 9}
        for g in range(2)
        for i in (1, 2)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    _, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl")
    assert pool.set_size == 2
    assert pool.problems["p"].tokens_N.tolist() == [9, 9]


def test_positions_without_generations_begin_one_at_each_first(tmp_path, capsys):
    rows = [{"problem": "p", "position": i, "scores": 0.5} for i in (1, 2, 1, 2)]
    write_rows(tmp_path / "rows.jsonl", rows)
    _, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl")
    assert pool.problems["p"].set_sizes_N == (2, 2)


def test_a_set_with_an_unknown_score_is_left_out_as_a_whole(tmp_path, capsys):
    rows = [{"problem": "p", "generation": g, "position": i, "scores": {"a": 0.5}} for g in (0, 1) for i in (1, 2)]
    rows[1]["scores"] = {"a": float("nan")}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl", "--skip-unscored")
    assert counts["skipped"] == 2
    assert pool.problems["p"].missing == 0
    assert pool.problems["p"].set_sizes_N == (2,)


@pytest.mark.parametrize(("answers", "left_out"), [(1, "1 answer"), (2, "2 answers")])
def test_a_pool_without_any_score_is_refused(answers, left_out, tmp_path, capsys):
    write_rows(tmp_path / "rows.jsonl", [{"problem": "p", "scores": {"a": None}, "x": 1}] * answers)
    error = refused(capsys, tmp_path / "rows.jsonl", "--map", "scores=scores.a", "--skip-unscored")
    assert f"must hold 1 or more answers, and this has none: {left_out} without a score left out" in error


def test_the_next_command_can_be_pasted(table, capsys, monkeypatch):
    monkeypatch.chdir(table.parent)
    assert main(["import", "rows.jsonl", "--map", "problem=id,scores=tests", "--out", "it's $HOME.jsonl"]) == 0
    written, _, command = capsys.readouterr().out.splitlines()[-1].partition("; next: ")
    assert written == "wrote it's $HOME.jsonl"
    assert shlex.split(command) == ["vpo", "measure", "it's $HOME.jsonl"]
    assert main(shlex.split(command)[1:]) == 0


def test_long_prompts_and_chats_name_problems(tmp_path, capsys):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    rows = [{"prompt": prompt, "score": 0.5} for prompt in (chat, "x" * 200 + "a", "x" * 200 + "b")]
    write_rows(tmp_path / "rows.jsonl", rows)
    _, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl", "--map", "problem=prompt,scores=score")
    names = list(pool.problems)
    assert names[0] == "Be brief. Hi"
    assert len(set(names)) == 3
    assert all(len(name) <= 80 for name in names)


def test_tokens_of_some_answers_are_those_of_none(tmp_path, capsys):
    write_rows(tmp_path / "rows.jsonl", [{"problem": "p", "scores": 1, "tokens": 9}, {"problem": "p", "scores": 1}])
    counts, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl")
    assert pool.problems["p"].tokens_N is None
    assert counts["notes"] == ["1 answers have no tokens, so the pool has none"]


def test_scores_are_scaled_by_a_stated_range(tmp_path, capsys):
    write_rows(tmp_path / "rows.jsonl", [{"q": 1, "rating": r, "errors": e} for r, e in ((1, 20), (4, 0))])
    mapping = ["--map", "problem=q,scores=rating,scores=errors"]
    error = refused(capsys, tmp_path / "rows.jsonl", *mapping)
    assert "rows.jsonl:1: scores['errors'] must lie in 0..1, not 20: scale it with --range errors=LOW..HIGH" in error
    ranges = ["--range", "rating=1..5", "--range", "errors=20..0"]
    _, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl", *mapping, *ranges)
    assert pool.problems["1"].scores_nD.tolist() == [[0, 0], [0.75, 1]]
    _, pool = imported(tmp_path, capsys, tmp_path / "rows.jsonl", *mapping, *ranges[:2], "--objectives", "rating")
    assert pool.objectives == ("rating",)
    error = refused(capsys, tmp_path / "rows.jsonl", *mapping, "--range", "rating=1..3", *ranges[2:])
    assert "rows.jsonl:2: scores['rating'] must lie in 1..3, not 4" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [],
            "the format is not known: give --from lm-eval|lighteval|evalplus|bigcode|verifiers|openevolve|trl, or name",
        ),
        ([], "such as --map problem=COLUMN,scores=COLUMN; the columns of"),
        ([], "are id, text, rewards, passed, tests"),
        (["--from", "lmeval"], "from names the format 'lmeval': did you mean 'lm-eval'?"),
        (
            ["--from", "table"],
            "rows.jsonl:1: no column 'problem': name it with --map problem=COLUMN; the columns are",
        ),
        (["--from", "trl", "--map", "scores=tests"], "map is for tables, and from is trl"),
        (["--map", "problem=id"], "rows.jsonl:1: no column 'scores': name it with --map scores=COLUMN"),
        (
            ["--map", "problem=id,scores=reward"],
            "rows.jsonl:1: no column 'reward' for scores: the columns are id",
        ),
        (["--map", "problem=id,score=rewards"], "map names the field 'score' of a pool: did you mean 'scores'?"),
        (["--map", "problem=id,problem=text"], "map must give problem once, and gives 'id' and 'text'"),
        (["--map", "problem=id,scores=text"], "rows.jsonl:1: scores['text'] must be a number, not 'a'"),
        (["--map", "problem=id,scores=tests,scores=tests"], "two columns of scores have the objective 'test_1'"),
        (["--map", "problem=passed,scores=rewards"], "the problem must be text, an integer or chat messages, not True"),
        (["--map", "problem=id,scores=rewards,solved=text"], "rows.jsonl:1: solved must be true or false, not 'a'"),
        (
            ["--map", "problem=id,scores=rewards", "--objectives", "corect"],
            "no score 'corect': did you mean 'correct'",
        ),
        (["--map", "problem=id,scores=rewards", "--range", "x=0..9"], "the answer has no score 'x'"),
        (["--map", "problem=id,scores=rewards", "--out", "no/such/pool.jsonl"], "no such folder: no/such"),
        (["--map", "problem=id,scores=rewards", "--out", "pool.csv"], "a file of rows must end in"),
    ],
)
def test_wrong_options_are_one_line(table, options, message, capsys, monkeypatch):
    monkeypatch.chdir(table.parent)
    assert message in refused(capsys, "rows.jsonl", *options)
    assert [path.name for path in table.parent.iterdir()] == ["rows.jsonl"]  # nothing is half written


@pytest.mark.parametrize("text", ["rewards", "scores=", "=rewards", "scores=a,,problem=b"])
def test_a_mapping_that_is_none_is_refused(text, table, capsys):
    with pytest.raises(SystemExit):
        main(["import", str(table), "--map", text])
    assert "must be FIELD=COLUMN" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["rating", "rating=1", "rating=2..2", "rating=a..b"])
def test_a_range_that_is_none_is_refused(text, table, capsys):
    with pytest.raises(SystemExit):
        main(["import", str(table), "--range", text])
    assert "must be NAME=LOW..HIGH" in capsys.readouterr().err


def test_a_file_is_not_overwritten_by_its_own_pool(table, capsys):
    assert "out must not be the file to import" in refused(capsys, table, "--map", "scores=tests", "--out", table)


@pytest.mark.parametrize("out", [None, "deeper/a.pool.jsonl.gz", "deeper/a.pool.parquet"])
def test_a_folder_is_imported_again_without_its_pool(out, table, capsys, monkeypatch):
    monkeypatch.chdir(table.parent)
    (table.parent / "deeper").mkdir()
    options = ["--map", "problem=id,scores=rewards", "--json", *(["--out", out] if out else [])]
    for _ in range(2):
        assert main(["import", ".", *options]) == 0
        counts = json.loads(capsys.readouterr().out)
        assert (counts["files"], counts["answers"]) == (1, 3)
    pool = counts["pool"]
    table.unlink()
    assert "it has no .jsonl, .parquet or .json file, or only pools (*.pool.jsonl)" in refused(capsys, ".")
    assert main(["import", pool, "--out", "copy.jsonl"]) == 0  # by its own name it is read


def test_a_pool_inside_the_folder_is_named_so(table, capsys, monkeypatch):
    monkeypatch.chdir(table.parent)
    rows = table.read_text()
    for out in ("rows.jsonl", "new.jsonl"):  # the first is a file to import
        error = refused(capsys, ".", "--map", "problem=id,scores=rewards", "--out", out)
        assert f"out must end in .pool.jsonl inside the folder to import, or lie outside of it, not {out}" in error
    assert table.read_text() == rows
    assert [path.name for path in table.parent.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.jsonl", b"", "the columns of {path} are none: it has no rows"),
        ("empty.json", b"", "{path}: the file is not JSON"),
        ("list.jsonl", b"[1]\n", "{path}:1: a row must be an object, not list"),
        ("number.json", b"7", "{path} has a JSON int"),
        ("text.csv", b"a,b\n", "{path}: a file to import must end in .jsonl, .jsonl.gz, .parquet or .json"),
        ("broken.parquet", b"PAR1", "the Parquet file is broken"),
        ("none.jsonl", None, "no such file or folder: {path}"),
    ],
)
def test_files_that_are_no_results_are_one_line(name, content, message, tmp_path, capsys):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert message.format(path=path) in refused(capsys, path)


UNREAD = ("metadata.json", "evaluation_results.json")


def damaged_files():
    for name, folder in FOLDERS.items():
        for path in sorted((WRITTEN / folder).rglob("*.*")):
            if path.suffix in (".jsonl", ".json", ".parquet") and path.name not in UNREAD:
                yield pytest.param(name, path, id=f"{name}-{path.name[:24]}")


@pytest.mark.parametrize(("name", "path"), list(damaged_files()))
def test_a_file_that_is_cut_off_is_one_line(name, path, tmp_path, capsys):
    content = path.read_bytes()
    folder = tmp_path / "programs" if name == "openevolve" else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / path.name).write_bytes(content[: len(content) * 2 // 3])
    error = refused(capsys, tmp_path, "--out", tmp_path / "x.pool.jsonl")
    assert path.name in error
    assert not Path(tmp_path / "x.pool.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "column"),
    [("lm-eval", "doc_id"), ("verifiers", "traces"), ("lm-eval", "exact_match")],
)
def test_a_later_row_without_a_column_is_named(name, column, tmp_path, capsys):
    path = sorted((WRITTEN / FOLDERS[name]).glob("*.jsonl"))[-1]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    del rows[1][column]
    write_rows(tmp_path / path.name, rows)
    error = refused(capsys, tmp_path / path.name)
    assert f"{path.name}:2: the row has no {column!r}" in error

import gzip
import json

import numpy as np
import pytest

from vpo import read_pool, write_pool
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows


def row(problem="p", generation=0, position=1, gold=0.5, lava=1.0, **more):
    return {
        "problem": problem,
        "generation": generation,
        "position": position,
        "scores": {"gold": gold, "lava": lava},
        **more,
    }


def lines(path, rows):
    path.write_text("".join(text if isinstance(text, str) else json.dumps(text) + "\n" for text in rows))
    return path


FULL = [
    row("a", 0, 1, gold=0.1, solved=False, tokens=12, answer="up"),
    row("a", 0, 2, gold=0.2, solved=True, tokens=12, answer="down"),
    row("a", 1, 1, gold=0.3, solved=False, tokens=8, answer="up"),
    row("a", 1, 2, gold=0.4, solved=False, tokens=8, answer=None),
    row(7, "x", 1, gold=0.5, solved=True, tokens=3, answer="left"),
    row(7, "x", 2, gold=0.6, solved=True, tokens=3, answer="left"),
]


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz", "pool.parquet"])
def test_what_is_written_is_read(tmp_path, name):
    write_pool(tmp_path / name, FULL)
    pool = read_pool(tmp_path / name)
    assert list(pool.problems) == ["a", "7"]
    assert pool.objectives == ("gold", "lava")
    assert pool.set_size == 2
    a = pool.problems["a"]
    assert a.set_sizes_N == (2, 2)
    np.testing.assert_array_equal(a.scores_nD, [[0.1, 1], [0.2, 1], [0.3, 1], [0.4, 1]])
    assert a.solved_n.tolist() == [False, True, False, False]
    assert a.tokens_N.tolist() == [12, 8]
    assert a.answers == ("up", "down", "up", None)
    assert a.missing == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_only_the_first_four_fields_are_needed(tmp_path):
    pool = read_pool(lines(tmp_path / "pool.jsonl", [row(), "\n", row(position=2)]))
    problem = pool.problems["p"]
    assert (problem.solved_n, problem.tokens_N, problem.answers) == (None, None, None)


def test_rows_may_come_in_any_order(tmp_path):
    shuffled = [FULL[i] for i in (5, 3, 0, 2, 4, 1)]
    pool = read_pool(lines(tmp_path / "pool.jsonl", shuffled))
    np.testing.assert_array_equal(pool.problems["7"].scores_nD[:, 0], [0.5, 0.6])
    np.testing.assert_array_equal(pool.problems["a"].scores_nD[:, 0], [0.3, 0.4, 0.1, 0.2])


def test_objectives_are_matched_by_name_not_by_order(tmp_path):
    rows = [row("a", gold=0.1, lava=0.9), {**row("b"), "scores": {"lava": 0.8, "gold": 0.2}}]
    pool = read_pool(lines(tmp_path / "pool.jsonl", rows))
    assert pool.objectives == ("gold", "lava")
    np.testing.assert_array_equal(pool.problems["b"].scores_nD, [[0.2, 0.8]])


def test_missing_answers_count_as_zeros(tmp_path):
    rows = [
        row("a", 0, 1, solved=True),
        row("a", 0, 3, solved=True),  # answer 2 is missing
        row("a", 1, 1, solved=True, answers=3),  # so are answers 2 and 3
    ]
    pool = read_pool(lines(tmp_path / "pool.jsonl", rows))
    problem = pool.problems["a"]
    assert pool.set_size == 3
    assert problem.missing == 3
    assert problem.scores_nD[:, 0].tolist() == [0.5, 0, 0.5, 0.5, 0, 0]
    assert problem.solved_n.tolist() == [True, False, True, True, False, False]


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.parquet"])
def test_objectives_may_differ_between_problems(tmp_path, name):
    rows = [
        {"problem": "a", "generation": 0, "position": 1, "scores": {"test_1": 1}},
        {"problem": "b", "generation": 0, "position": 1, "scores": {"test_1": True, "test_2": False}},
    ]
    write_pool(tmp_path / name, rows)
    pool = read_pool(tmp_path / name)
    assert pool.objectives is None
    assert pool.problems["a"].objectives == ("test_1",)
    assert pool.problems["b"].scores_nD.tolist() == [[1, 0]]


def test_a_struct_column_of_parquet_is_read_too(tmp_path):
    import pyarrow
    import pyarrow.parquet

    rows = [row("a"), {**row("b"), "scores": {"test_1": 1.0}}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "pool.parquet")
    rows[1]["scores"] = {"gold": 0.5}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "pool.parquet")
    pool = read_pool(tmp_path / "pool.parquet")
    assert pool.problems["a"].objectives == ("gold", "lava")
    assert pool.problems["b"].objectives == ("gold",)  # lava is null there


def test_more_fields_are_kept_by_the_writer(tmp_path):
    write_pool(tmp_path / "pool.jsonl", [row(temperature=0.7)])
    assert json.loads((tmp_path / "pool.jsonl").read_text())["temperature"] == 0.7


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    write_pool(tmp_path / "pool.jsonl", FULL)
    before = (tmp_path / "pool.jsonl").read_text()
    with pytest.raises(ValueError, match="scores"):
        write_pool(tmp_path / "pool.jsonl", [row(), row(gold=float("nan"))])
    assert [path.name for path in tmp_path.iterdir()] == ["pool.jsonl"]
    assert (tmp_path / "pool.jsonl").read_text() == before


BAD = [
    ([row(), "{not json\n"], r"pool.jsonl:2: the line is not JSON"),
    ([row(), "\n", "[1, 2]\n"], r"pool.jsonl:3: a row must be an object, not \[1, 2\]"),
    (["[" * 100_000 + "\n"], r"pool.jsonl:1: the line is not JSON"),
    ([{"problem": "p"}], "pool.jsonl:1: the row has no 'generation'"),
    ([row(problem=None)], "pool.jsonl:1: the row has no 'problem'"),
    ([row(problem=True)], "pool.jsonl:1: problem must be text or an integer, not True"),
    ([row(problem=1.5)], "pool.jsonl:1: problem must be text or an integer, not 1.5"),
    ([row(position=0)], r"pool.jsonl:1: position must be an integer in 1\.\.10000, not 0"),
    ([row(position=1.5)], "position must be an integer"),
    ([row(position="1")], "position must be an integer"),
    ([row(position=10**9)], r"position must be an integer in 1\.\.10000, not 1000000000"),
    ([row(position=2, answers=1)], r"position must lie in 1\.\.1 \(answers\), not 2"),
    ([row(), row(position=2, gold=float("nan"))], r"pool.jsonl:2: scores\['gold'\] must be a finite number, not nan"),
    ([row(gold=float("inf"))], r"scores\['gold'\] must be a finite number, not inf"),
    ([row(gold=10**400)], r"scores\['gold'\] must be a finite number, not 1000"),
    ([row(gold="high")], r"scores\['gold'\] must be a finite number, not 'high'"),
    ([row(gold=None)], r"scores\['gold'\] must be a finite number, not None"),
    ([{**row(), "scores": {}}], "scores must map 1 or more objectives to numbers, not {}"),
    ([{**row(), "scores": [1, 2]}], "scores must map 1 or more objectives to numbers"),
    ([row(), {**row(position=2), "scores": {"gold": 1}}], "pool.jsonl:2: scores must have the objectives .* not gold"),
    ([row(), row()], "pool.jsonl:2: position 1 of generation '0' is in line 1 already"),
    ([row(solved=True), row(position=2)], "solved must be in every row or in none: line 1 has it, line 2 does not"),
    ([row(), row(position=2, tokens=3)], "tokens must be in every row or in none: line 2 has it, line 1 does not"),
    ([row(solved="yes")], "solved must be true or false, not 'yes'"),
    ([row(tokens=0)], "tokens must be an integer"),
    ([row(tokens=3), row(position=2, tokens=4)], "tokens must be the same in every row of generation '0', 3, not 4"),
    ([row(answers=3), row(position=2)], "answers must be the same in every row of generation '0', 3, not None"),
    ([row(answer=5)], "answer must be text, not 5"),
    ([], "a pool must hold 1 or more rows, and this file has none"),
]


@pytest.mark.parametrize(("rows", "message"), BAD, ids=[message[:60] for _, message in BAD])
def test_a_malformed_row_is_reported_with_its_line(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        read_pool(lines(tmp_path / "pool.jsonl", rows))


def bad_file(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    return tmp_path / name


def parquet(tmp_path, rows, **kinds):
    import pyarrow
    import pyarrow.parquet

    columns = {name: pyarrow.array([row[name] for row in rows], type=kinds.get(name)) for name in rows[0]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "pool.parquet")
    return tmp_path / "pool.parquet"


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"no such file: .*nowhere.jsonl"):
        read_pool(tmp_path / "nowhere.jsonl")
    with pytest.raises(ValueError, match=r"pool.csv: a file of rows must end in .jsonl, .jsonl.gz or .parquet"):
        read_pool(tmp_path / "pool.csv")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(ValueError, match=r"folder.jsonl is a folder, not a file"):
        read_pool(tmp_path / "folder.jsonl")
    with pytest.raises(ValueError, match=r"no such folder: .*nowhere"):
        write_pool(tmp_path / "nowhere" / "pool.jsonl", FULL)
    with pytest.raises(ValueError, match="a pool must hold 1 or more rows, not 0"):
        write_pool(tmp_path / "empty.parquet", [])


WHOLE = gzip.compress(json.dumps(row()).encode() * 1000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pool.parquet", b"not parquet", r"pool.parquet:1: the Parquet file is broken"),
        ("pool.jsonl.gz", WHOLE[:50], r"pool.jsonl.gz:1: the gzip file is broken"),
        ("pool.jsonl.gz", WHOLE[:40] + bytes(10) + WHOLE[50:], r"pool.jsonl.gz:1: the gzip file is broken"),
        ("pool.jsonl", b'{"problem": "\xe9"}\n', r"pool.jsonl:1: the line is not JSON"),
        ("pool.jsonl", b'{"problem": ' + b"9" * 5000 + b"}\n", r"pool.jsonl:1: the line is not JSON"),
        ("pool.jsonl", b'{"scores": {"a": 1, "a": 0}}\n', r"pool.jsonl:1: .*'a' occurs twice in one object"),
        ("pool.jsonl", b'{"scores": {}, "scores": {"a": 0}}\n', r"'scores' occurs twice in one object"),
    ],
)
def test_damaged_files_are_one_line_with_the_location(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_pool(bad_file(tmp_path, name, content))
    assert "\n" not in str(caught.value)


def test_damaged_parquet_is_named(tmp_path):
    write_pool(tmp_path / "pool.parquet", [row(generation=number) for number in range(1000)])
    content = (tmp_path / "pool.parquet").read_bytes()
    bad_file(tmp_path, "pool.parquet", content[:100] + bytes(200) + content[300:])
    with pytest.raises(ValueError, match=r"pool.parquet:1: the Parquet file is broken") as caught:
        read_pool(tmp_path / "pool.parquet")
    assert "\n" not in str(caught.value)


def test_a_score_is_never_dropped_from_a_map(tmp_path):
    import pyarrow

    kind = pyarrow.map_(pyarrow.string(), pyarrow.float64())
    path = parquet(tmp_path, [{**row(), "scores": [("gold", 1.0), ("gold", 0.0)]}], scores=kind)
    with pytest.raises(ValueError, match=r"pool.parquet:1: "):
        read_pool(path)
    path = parquet(tmp_path, [{**row(), "scores": [1.0, 2.0]}])
    with pytest.raises(ValueError, match=r"pool.parquet:1: scores must map 1 or more objectives to numbers"):
        read_pool(path)


def test_numpy_numbers_are_written(tmp_path):
    numbers = row("a", np.int64(0), np.int32(1), gold=np.float32(0.5), lava=np.bool_(True))
    write_pool(tmp_path / "pool.jsonl", [{**numbers, "tokens": np.int64(7), "solved": np.bool_(False)}])
    problem = read_pool(tmp_path / "pool.jsonl").problems["a"]
    assert problem.scores_nD.tolist() == [[0.5, 1]]
    assert problem.tokens_N.tolist() == [7]


def test_what_would_not_be_read_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="row 2: position 1 of generation '0' is in line 1 already"):
        write_pool(tmp_path / "pool.jsonl", [row(), row()])
    with pytest.raises(ValueError, match="row 2: solved must be in every row or in none"):
        write_pool(tmp_path / "pool.jsonl", [row(solved=True), row(position=2)])
    assert list(tmp_path.iterdir()) == []


def test_written_files_have_the_rights_of_any_new_file(tmp_path):
    write_pool(tmp_path / "pool.jsonl", FULL)
    (tmp_path / "other").touch()
    assert (tmp_path / "pool.jsonl").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_malformed_row_of_parquet_is_reported_with_its_number(tmp_path):
    import pyarrow
    import pyarrow.parquet

    rows = [row(), row(position=0)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "pool.parquet")
    with pytest.raises(ValueError, match=r"pool.parquet:2: position must be an integer"):
        read_pool(tmp_path / "pool.parquet")


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([{"a": 1}, None], ":2: target must be in every row or in none: line 1 has it, line 2 does not"),
        ([{"a": 1}, {"b": 1}], ":2: target must be the same in every row of the problem"),
        ([{"c": 1}], ":1: target names 'c', and the objectives of the row are a, b"),
        ([{"a": -1}], r":1: target\['a'\] must be a number of 0 or more, not -1"),
        ([{"a": 0}], ":1: target must hold weights"),
        ([7], ":1: target must map objectives to weights, not 7"),
    ],
)
def test_a_wrong_target_is_reported_with_its_line(tmp_path, targets, message):
    row = {"problem": "p", "position": 1, "scores": {"a": 1, "b": 0}}
    rows = [{**row, "generation": index, "target": target} for index, target in enumerate(targets)]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    with pytest.raises(InputError, match=message):
        read_pool(tmp_path / "pool.jsonl")


def test_targets_of_problems_that_differ_must_be_uniform(tmp_path):
    rows = [
        {"problem": 1, "generation": 0, "position": 1, "scores": {"a": 1}, "target": {"a": 1}},
        {"problem": 2, "generation": 0, "position": 1, "scores": {"a": 1, "b": 0}, "target": {"a": 2, "b": 2}},
    ]
    write_pool(tmp_path / "pool.parquet", rows)
    pool = read_pool(tmp_path / "pool.parquet")
    assert pool.states_target
    assert pool.target is None
    rows[1]["target"] = {"a": 2, "b": 1}
    write_pool(tmp_path / "pool.jsonl", rows)
    with pytest.raises(InputError, match="target must be the same in every row, or uniform where problems differ"):
        read_pool(tmp_path / "pool.jsonl")


# Completions


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz", "pool.parquet"])
def test_a_pool_keeps_completions_and_does_not_measure_them(tmp_path, name):
    kept = [{**each, "completion": "raw\n"} if each["position"] == 1 else each for each in FULL]
    write_pool(tmp_path / name, kept)
    write_pool(tmp_path / f"plain-{name}", FULL)
    texts = [each.get("completion") for _, each in read_rows(tmp_path / name)]
    assert texts == ["raw\n", None] * 3
    pool, plain = read_pool(tmp_path / name), read_pool(tmp_path / f"plain-{name}")
    assert repr(pool.problems) == repr(plain.problems)


def test_the_column_of_completions_is_not_read_from_parquet(tmp_path):
    write_pool(tmp_path / "pool.parquet", [{**each, "completion": "raw"} for each in FULL])
    rows = [each for _, each in read_rows(tmp_path / "pool.parquet", without=["completion", "other"])]
    assert rows[0].keys() == read_columns(tmp_path / "pool.parquet") - {"completion"}
    assert rows[0]["scores"] == FULL[0]["scores"]


def read_columns(path):
    from pyarrow import parquet

    return set(parquet.read_schema(path).names)


def test_a_completion_must_be_text(tmp_path):
    with pytest.raises(InputError, match=r"pool.jsonl:1: completion must be text, not 7"):
        read_pool(lines(tmp_path / "pool.jsonl", [row(completion=7)]))
    assert read_pool(lines(tmp_path / "null.jsonl", [row(completion=None)])).problems

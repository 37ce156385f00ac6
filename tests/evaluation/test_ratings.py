import json
from pathlib import Path

import pytest

from vpo.cli.main import main
from vpo.evaluation.ratings import read_ratings
from vpo.util.errors import InputError
from vpo.util.row_files import write_rows

RATINGS = Path(__file__).parents[3] / "shared" / "data" / "ratings"

ROWS = [
    {"dialogue": "d1", "clear": 1, "deep": 5, "text": "x"},
    {"dialogue": "d1", "clear": 3, "deep": 1, "text": "y"},
    {"dialogue": "d1", "clear": 2, "deep": 4, "text": "y"},
    {"dialogue": "d2", "clear": 3, "deep": 3, "text": "z"},
]


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet"])
def test_ratings_are_scaled_by_their_range(tmp_path, form):
    path = tmp_path / f"ratings.{form}"
    write_rows(path, ROWS)
    ratings = read_ratings(path, group_by="dialogue", objectives=["clear", "deep"])
    assert ratings.ranges == {"clear": (1, 3), "deep": (1, 5)}
    assert ratings.pools[0].problems["d1"].scores_nD.tolist() == [[0, 1], [1, 0], [0.5, 0.75]]
    assert ratings.pools[0].problems["d2"].scores_nD.tolist() == [[1, 0.5]]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_ratings_in_one_column_need_no_names(tmp_path, form):
    path = tmp_path / f"ratings.{form}"
    write_rows(path, [{"id": i // 2, "scores": {"a": i, "b": 7.0}} for i in range(4)])
    ratings = read_ratings(path, group_by="id")
    assert ratings.ranges == {"a": (0, 3), "b": (7, 7)}
    assert ratings.pools[0].problems["1"].scores_nD[:, 1].tolist() == [0, 0]  # no range, no spread
    assert read_ratings(path, group_by="id", objectives=["a"]).pools[0].objectives == ("a",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_by": "dialog"}, r"ratings.jsonl:1: the row has no 'dialog' to group by: did you mean 'dialogue'\?"),
        ({"group_by": "dialogue"}, "ratings.jsonl:1: the row has no column 'scores', so its ratings must be named"),
        ({"group_by": "dialogue", "objectives": ["cleer"]}, r"no rating 'cleer': did you mean 'clear'\?"),
        ({"group_by": "dialogue", "objectives": ["text"]}, r"scores\['text'\] must be a finite number, not 'x'"),
        ({"group_by": "clear", "objectives": ["deep", "late"]}, "no rating 'late'"),
    ],
)
def test_bad_ratings_are_one_line(tmp_path, options, message):
    write_rows(tmp_path / "ratings.jsonl", ROWS)
    with pytest.raises(InputError, match=message):
        read_ratings(tmp_path / "ratings.jsonl", **options)


def test_rows_that_are_no_objects_and_files_without_rows(tmp_path):
    (tmp_path / "list.jsonl").write_text("[1]\n")
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(InputError, match=r"list.jsonl:1: a row must be an object"):
        read_ratings(tmp_path / "list.jsonl", group_by="x")
    with pytest.raises(InputError, match="1 or more rows"):
        read_ratings(tmp_path / "none.jsonl", group_by="x")


def test_diagnose_reads_ratings_and_proposes_sets(tmp_path, capsys):
    path = tmp_path / "ratings.jsonl"
    write_rows(path, ROWS)
    arguments = ["diagnose", str(path), "--group-by", "dialogue", "--objectives", "clear, deep"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "scaled to 0..1     clear 1..3, deep 1..5 (by their range in the file)" in text
    assert "which objectives?" in text
    assert main([*arguments, "--json", "--drop", "deep", "--same", "0.8"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ranges"] == {"clear": [1, 3], "deep": [1, 5]}
    assert data["decomposition"]["threshold"] == 0.8
    assert {each["kind"] for each in data["decomposition"]["proposals"]} >= {"all", "by hand"}
    assert data["decomposition"]["recommendation"].startswith("Objectives: keep all 2")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objectives", "clear"], "objectives needs --group-by"),
        (["--group-by", "dialogue", "--objectives", "clear,deep", "--merge", "clear"], "merge must name 2 or more"),
        (["--group-by", "dialogue", "--objectives", "clear,deep", "--drop", "dep"], "did you mean 'deep'?"),
        (["--group-by", "dialogue", "--objectives", "clear,deep", "--same", "2"], "at most 1, not 2.0"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, capsys, more, message):
    path = tmp_path / "ratings.jsonl"
    write_rows(path, ROWS)
    assert main(["diagnose", str(path), *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_human_ratings_of_dialogues_show_a_halo_effect():
    path = RATINGS / "topical_chat_usr360.jsonl.gz"
    if not path.exists():
        pytest.skip(f"shared/data/ratings/{path.name} is not here")
    from vpo.evaluation.decompose import decompose

    pool = read_ratings(path, group_by="source").pools[0]
    assert len(pool.problems) == 60
    assert decompose(pool).groups == ()
    ratings = decompose(pool, same=0.85)
    assert ratings.groups == (("engagingness", "overall"), ("naturalness", "understandability"))
    assert {each.verdict for each in ratings.proposals} == {"no"}


def test_measure_reads_ratings_on_one_scale(tmp_path, capsys):
    # Ratings of 1..5 in one file and 1..3 in the other: by its own range each would have a best of 1.
    for name, ratings in (("a", [1, 5]), ("b", [1, 3])):
        write_rows(tmp_path / f"{name}.jsonl", [{"q": "x", "clear": rating} for rating in ratings])
    options = ["--group-by", "q", "--objectives", "clear", "--k", "2"]
    assert main(["measure", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), *options, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ranges"] == {"clear": [1, 5]}
    (best,) = [
        row for row in data["measures"] if (row["section"], row["by"]) == ("best@k", "answers") and row["at"] == 2
    ]
    assert [value["mean"] for value in best["values"]] == [1, 0.5]
    assert main(["measure", str(tmp_path / "a.jsonl"), *options]) == 0
    assert "clear 1..5 (by their range in the file)" in capsys.readouterr().out


def test_measure_refuses_ratings_that_differ_and_objectives_without_groups(tmp_path, capsys):
    write_rows(tmp_path / "a.jsonl", [{"q": "x", "scores": {"clear": 1}}])
    write_rows(tmp_path / "b.jsonl", [{"q": "x", "scores": {"deep": 1}}])
    assert main(["measure", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--group-by", "q"]) == 2
    error = capsys.readouterr().err
    assert f"b.jsonl must have the ratings of {tmp_path / 'a.jsonl'}, clear, not deep" in error
    assert main(["measure", str(tmp_path / "a.jsonl"), "--objectives", "clear"]) == 2
    assert "objectives needs --group-by; to leave out objectives of a pool, use --target" in capsys.readouterr().err

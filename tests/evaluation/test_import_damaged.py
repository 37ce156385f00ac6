"""Results with a value that is missing or of another type anywhere: a pool, or one line, and never a traceback."""

import copy
import json
import random

import pytest

from tests.evaluation.test_import import FOLDERS, WRITTEN, refused
from vpo import read_pool
from vpo.evaluation.importers.convert import Choices, import_pool
from vpo.util.errors import InputError
from vpo.util.row_files import read_rows

pytest.importorskip("pyarrow")

WRONG = (None, True, -7, 2.5, float("inf"), "x", "", [], [None], [[1]], {}, {"a": None}, {"content": 3})


def nodes(value, path=()):
    """The path of every value inside JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from nodes(each, (*path, key))


def mutated(value, random_source):
    """A copy with one value removed or replaced; and the path of it."""
    value = copy.deepcopy(value)
    *path, last = random_source.choice([path for path in nodes(value) if path])
    holder = value
    for key in path:
        holder = holder[key]
    wrong = random_source.choice((*WRONG, ...))
    if wrong is ...:
        del holder[last]
    else:
        holder[last] = wrong
    return value


def contents():
    """Each file that is read, as JSON: a document, or a list of rows."""
    for name, folder in {**FOLDERS, "verifiers before 0.4": "verifiers_0_1"}.items():
        for path in sorted((WRITTEN / folder).rglob("*.*")):
            if path.suffix in (".json", ".jsonl", ".parquet") and path.name != "metadata.json":
                yield pytest.param(name.split()[0], path, id=f"{name}-{path.name[:20]}")
                if name == "openevolve":
                    break


@pytest.mark.parametrize(("name", "path"), list(contents()))
def test_wrong_values_are_one_line(name, path, tmp_path):
    rows = path.suffix != ".json"
    content = [row for _, row in read_rows(path)] if rows else json.loads(path.read_text())
    folder = tmp_path / "in" / ("programs" if name == "openevolve" else "")
    folder.mkdir(parents=True)
    if name == "bigcode":  # its files are read together
        for other in path.parent.glob("*.json"):
            (folder / other.name).write_bytes(other.read_bytes())
    random_source = random.Random(path.name)
    for _ in range(80):
        wrong = mutated(content, random_source)
        text = "".join(json.dumps(row) + "\n" for row in wrong) if rows else json.dumps(wrong)
        (folder / (f"{path.stem}.jsonl" if rows else path.name)).write_text(text)
        for source_format in (None, name):
            check(tmp_path, source_format)


def check(tmp_path, source_format):
    """Import what is there."""
    pool = tmp_path / "pool.jsonl"
    pool.unlink(missing_ok=True)
    try:
        import_pool(tmp_path / "in", pool, format=source_format, choices=Choices())
        read_pool(pool)
    except InputError as error:
        line = str(error)
    else:
        return
    assert "\n" not in line
    assert not pool.exists()


HUGE = 10**400  # no float can hold it


@pytest.mark.parametrize("options", [[], ["--range", "a=0..5"], ["--skip-unscored"]])
def test_a_score_that_no_float_can_hold_is_one_line(options, tmp_path, capsys):
    rows = [{"problem": "p", "scores": {"a": 1}}, {"problem": "p", "scores": {"a": HUGE}}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    error = refused(capsys, tmp_path / "rows.jsonl", *options)
    assert "rows.jsonl:2: scores['a'] must be a number, not 1000" in error
    assert len(error) < 500 + len(str(tmp_path))


@pytest.mark.parametrize(
    "weight", [float("nan"), float("inf"), float("-inf"), HUGE, -HUGE], ids=lambda weight: str(weight)[:4]
)
@pytest.mark.parametrize("lines", [(3,), (1, 2, 3, 4)])
def test_a_weight_that_is_not_finite_is_refused(lines, weight, tmp_path, capsys):
    rows = [row for _, row in read_rows(WRITTEN / "verifiers" / "traces.jsonl")]
    assert len(rows) == 4
    for line in lines:
        rows[line - 1]["traces"][0]["rewards"]["short"]["weight"] = weight
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    error = refused(capsys, tmp_path / "traces.jsonl")
    assert f"traces.jsonl:{lines[0]}: the weight of the reward 'short' must be a finite number, not " in error
    assert len(error) < 500 + len(str(tmp_path))


HALF = "\ud83d"  # of a surrogate pair, which UTF-8 cannot encode; a pool has it escaped
ESCAPED = r"\ud83d"


def with_halves(value):
    """JSON with half of a surrogate pair after every text that is no keyword of a format."""
    if isinstance(value, dict):
        return {key: with_halves(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_halves(each) for each in value]
    return value + HALF if isinstance(value, str) and value not in ("pass", "fail") else value


@pytest.mark.parametrize("out", ["pool.jsonl", "pool.parquet"])
@pytest.mark.parametrize(("name", "path"), list(contents()))
def test_halves_of_surrogate_pairs_are_escaped(name, path, out, tmp_path):
    folder = tmp_path / "in" / ("programs" if name == "openevolve" else "")
    folder.mkdir(parents=True)
    for each in sorted(path.parent.glob("*.json")) if name == "bigcode" else [path]:
        if each.suffix == ".json":
            (folder / each.name).write_text(json.dumps(with_halves(json.loads(each.read_text()))))
        else:
            rows = [{**with_halves(row), **kept(row)} for _, row in read_rows(each)]
            (folder / f"{each.stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_pool(tmp_path / "in", tmp_path / out, format=name, choices=Choices())
    problems = read_pool(tmp_path / out).problems.values()
    assert all(text.endswith(ESCAPED) for problem in problems for text in problem.answers or ())


def kept(row):
    """Columns of lm-eval that name others."""
    return {name: row[name] for name in ("metrics",) if isinstance(row.get(name), list)}


@pytest.mark.parametrize("out", ["pool.jsonl", "pool.parquet"])
def test_halves_in_names_are_escaped(out, tmp_path):
    status = {"base_status": "pass", "plus_status": "fail", "solution": HALF}
    log = {"doc_id": HALF, "resps": [["x"]], "filtered_resps": ["x"], "metrics": [HALF], HALF: 1.0}
    cells = {"problem": HALF * 90, "scores": {HALF: 0.5}, "generation": HALF, "answer": HALF, "completion": HALF}
    (tmp_path / "eval_results.json").write_text(json.dumps({"eval": {HALF: [status]}}))
    (tmp_path / "samples_t.jsonl").write_text(json.dumps(log))
    (tmp_path / "table.jsonl").write_text(json.dumps(cells))

    def names(file, objectives=None):
        import_pool(tmp_path / file, tmp_path / out, choices=Choices(objectives))
        (problem,) = read_pool(tmp_path / out).problems.values()
        return problem.problem, problem.objectives, problem.answers

    assert names("eval_results.json") == (ESCAPED, ("base", "plus"), (ESCAPED,))
    assert names("samples_t.jsonl") == (f"t/{ESCAPED}", (ESCAPED,), ("x",))
    problem, *others = names("table.jsonl", [ESCAPED])  # by the name that the pool has
    assert problem.startswith(ESCAPED * 60 + "… ")
    assert others == [(ESCAPED,), (ESCAPED,)]
    ((_, row),) = read_rows(tmp_path / out)
    assert (row["generation"], row["completion"]) == (ESCAPED, ESCAPED)

"""The page of searches, opened in a headless browser."""

import difflib
import json

import numpy as np
import pytest

pytest.importorskip("transformers")

from tests.report.browser import needs_browser, opened, page_json
from tests.report.search_logs import TASK, write_search
from vpo.cli.main import main
from vpo.core.diversity import is_nondominated
from vpo.report import search_families
from vpo.report.page import write_page
from vpo.report.search_curves import best_values
from vpo.report.search_page import search_page
from vpo.search.log import read_candidates
from vpo.search.result import families_of, merge_seeds, read_result

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("searches")
    command = ["search", "embedded", "--task", "maze", "--set", "size=7", "--problems", "4", "--target", "gold=1"]
    assert main([*command, "--answers", "3", "--iterations", "6", "--out", str(out)]) == 0
    return out


def written(folder, **settings):
    """The page of two searches of `write_search`, and their folders."""
    (folder / "packing.py").write_text(TASK)
    folders = [folder / strategy for strategy in ("evolve", "best_of_n")]
    for each in folders:
        write_search(each, folder / "packing.py", strategy=each.name, **settings)
    data = search_page([read_result(each) for each in folders], folders, "vpo search")
    write_page(folder / "report.html", data)
    return folder / "report.html", folders, data


@pytest.fixture(scope="module")
def unsolved(tmp_path_factory):
    return written(tmp_path_factory.mktemp("unsolved"))


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_draws_what_was_solved_and_the_family(folder, width):
    page, console = opened(folder / "report.html", width)
    assert console == []
    assert page.seen["width"] <= width
    assert page.seen["sections"][:5] == ["moved", "search", "descent", "nondominated", "spent"]
    results = [read_result(folder / name) for name in ("embedded-evolve", "embedded-best_of_n")]
    for run, result in enumerate(results):
        for unit in ("iterations", "answers", "generations", "tokens"):
            points = page.points[f"by {unit}", run]
            expected = result.curve(unit, [point[0] for point in points])
            assert [point[1:] for point in points] == [
                pytest.approx((value.mean, value.low, value.high)) for value in expected
            ]
        for unit in ("answers", "generations", "tokens"):
            assert page.points[f"{unit} spent", run][-1][1] == result.spent[unit].sum()
    case = page.seen["problems"][0].removesuffix(" ✓")
    members = families_of(folder / "embedded-evolve")[case]
    line = [each["number"] for each in members if each["ancestor"]]
    assert page.seen["family"] == len(members)
    assert page.seen["best"]["line"] == line
    assert f"candidate {line[-1]}:" in page.seen["best"]["title"]
    assert "✓ solved" in page.seen["best"]["text"]
    assert page.seen["best"]["drawn"] == min(2, len(line))  # its route, and its parent's
    assert page.seen["start"]["drawn"] == 1


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_a_search_that_solves_nothing_shows_its_best(unsolved, width):
    file, folders, _ = unsolved
    page, console = opened(file, width)
    assert console == []
    assert page.seen["width"] <= width
    assert page.seen["sections"][:4] == ["moved", "descent", "nondominated", "spent"]  # nothing was solved
    rows = sorted(read_candidates(folders[0]), key=lambda row: row["number"])
    scored = [row for row in rows if row["scores"]]
    best = max(scored, key=lambda row: row["value"])
    assert best["value"] < 0
    assert page.seen["verdict"].startswith(f"Nothing was solved. Best value: evolve {best['value']:.6g}")
    seen = page.seen["best"]
    assert page.seen["family"] == len(rows)
    assert seen["line"][-1] == best["number"]
    assert seen["line"][-2] == best["parent"]
    assert best["feedback"] in seen["text"]
    changes = list(difflib.ndiff(rows[best["parent"]]["answer"].split("\n"), best["answer"].split("\n")))
    for sign, shown in (("+", seen["added"]), ("-", seen["removed"])):
        assert shown == [line for line in changes if line[0] == sign]
    assert page.seen["parent"]["line"] == seen["line"][:-1]
    assert page.seen["start"]["title"] == "candidate 0: the start"
    assert "    # <b>a sign & another</b>" in page.seen["start"]["text"]
    assert page.seen["next"]["title"].startswith("candidate 1: iteration 1, ")
    assert page.seen["clicked"]["title"].startswith(f"candidate {rows[-1]['number']}:")


@needs_browser
def test_fronts_and_the_best_are_those_of_the_log(unsolved):
    file, folders, data = unsolved
    page = opened(file, 1280)[0]
    case = data["search"]["families"]["cases"][0]
    assert case["objectives"] == ["radii", "legal", "short"]
    fronts = []
    for run, folder in enumerate(folders):
        rows = sorted(read_candidates(folder), key=lambda row: row["number"])
        values = {}
        for row in rows:
            if row["scores"]:
                values[row["iteration"] + 1] = max(row["value"], *values.values()) if values else row["value"]
        points = {point[0]: point[1] for point in page.points["best by iterations", run]}
        assert points == pytest.approx({step: values[step] for step in points if step in values} | {12: values[12]})
        assert points[0] == rows[0]["value"]
        scores = np.asarray([[float(f"{score:.7g}") for score in row["scores"]] for row in rows if row["scores"]])
        fronts.append((int(is_nondominated(scores).sum()), len(scores)))
    start, end = page.seen["fronts"]
    assert start == [[1, 1, 1], [1, 1, 1]]
    assert [(row[1], row[2]) for row in end] == fronts
    assert page.seen["other"] == len(read_candidates(folders[1]))


def test_what_a_search_started_from_costs_nothing_and_counts(unsolved):
    result = read_result(unsolved[1][0])
    rows = read_candidates(unsolved[1][0])
    assert rows[0]["operator"] == "start"
    assert {unit: spent.tolist() for unit, spent in result.spent.items()} == {
        "iterations": [12],
        "answers": [36],
        "generations": [36],
        "tokens": [36 * 40],
    }
    assert result.trajectories[0].best_within("tokens", [0, 40 * 36]).tolist() == [
        rows[0]["value"],
        max(row["value"] for row in rows if row["scores"]),
    ]
    assert result.trajectories[0].spent_after("answers", [0, 1, 12]).tolist() == [0, 3, 36]


def test_a_family_goes_back_through_both_parents(unsolved):
    (members,) = families_of(unsolved[1][0]).values()
    crossed = [each for each in members if each["second"] is not None and each["ancestor"]]
    assert crossed
    for each in crossed:
        assert members[each["parent"]]["ancestor"]
        assert members[each["second"]]["ancestor"]


def test_the_best_of_several_seeds_is_a_mean_over_the_same_cases(tmp_path):
    results = []
    for seed in (0, 1):
        write_search(tmp_path / f"seed-{seed}", "gone", cases=3, iterations=4, seed=seed)
        results.append(read_result(tmp_path / f"seed-{seed}"))
    merged = merge_seeds(results, "both")
    for budget in (0, 1, 4):
        each = [trajectory.best_within("iterations", [budget])[0] for one in results for trajectory in one.trajectories]
        (value,) = best_values([merged], 0, "iterations", [budget])
        assert value.mean == pytest.approx(np.mean(each))
        assert value.low <= value.mean <= value.high
    data = search_page([merged], [tmp_path / "seed-0"], "vpo search")
    assert "Of several seeds, the first." in data["search"]["families"]["note"]
    assert data["search"]["families"]["cases"][0]["objectives"] == []  # its task is gone, so they are numbered


def test_a_page_of_many_cases_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(search_families, "BYTES", 150_000)
    monkeypatch.setattr(search_families, "FAMILY", 5_000)
    page, folders, data = written(tmp_path, cases=30, iterations=6, lines=60)
    families = data["search"]["families"]
    size = len(json.dumps(page_json(page)["search"]["families"]))
    assert size < 150_000
    shown = len(families["cases"])
    assert 1 <= shown <= search_families.CASES
    assert families["note"].startswith(f"{shown} of 30 problems with a goal are here")
    assert "Long answers are cut off." in families["note"]
    logged = {(row["case"], row["number"]): row for row in read_candidates(folders[0])}
    for case in families["cases"]:
        family = case["runs"][0]
        ends = [number for number in family["members"]["number"] if number == family["end"]]
        (at,) = (family["members"]["number"].index(number) for number in ends)
        text = "\n".join(family["lines"][line] for line in family["texts"][family["members"]["answer"][at]])
        assert text == logged[case["case"], family["end"]]["answer"]  # that of the best is whole


def test_of_a_long_search_the_best_and_its_ancestors_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(search_families, "MEMBERS", 30)
    _, folders, data = written(tmp_path, iterations=40)
    (case,) = data["search"]["families"]["cases"]
    (members,) = families_of(folders[0]).values()
    kept = set(case["runs"][0]["members"]["number"])
    assert len(kept) == 30
    assert {each["number"] for each in members if each["ancestor"]} <= kept
    assert case["runs"][0]["left_out"] == len(members) - 30
    assert "candidates of low value are left out" in data["search"]["families"]["note"]

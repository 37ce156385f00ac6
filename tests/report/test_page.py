"""The page, opened in a headless browser: what is drawn is what was measured, and nothing goes wrong."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.evaluation.test_compare import make_evaluation
from vpo.evaluation.compare import compare_groups
from vpo.evaluation.eval_folder import read_evaluation
from vpo.evaluation.pools import ProblemPool
from vpo.report.curves import curves_of
from vpo.report.gallery import answers_of
from vpo.report.page import write_page
from vpo.report.page_data import page_data, positions_of, training_curves

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
TARGET = {"completion": 0.25, "gold": 0.25, "diamond": 0.25, "avoid_lava": 0.25}
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A comparison of a run of one seed and of one of two, with its page."""
    folder = tmp_path_factory.mktemp("page")
    for name, seed, answers in (("grpo", 0, 1), ("vpo-0", 1, 3), ("vpo-1", 2, 3)):
        make_evaluation(folder / name, seed, answers, command=f"vpo eval {name}")
        steps = [
            {"step": step, "entropy": 1 / step, "vpo/diversity": seed + step / 10, "vpo/objective/gold": step / 10}
            for step in (1, 2, 3)
        ]
        (folder / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
    evaluations = [[read_evaluation(folder / "grpo")], [read_evaluation(folder / f"vpo-{seed}") for seed in (0, 1)]]
    comparison = compare_groups([[each.pool for each in group] for group in evaluations], target=TARGET)
    data = page_data(
        comparison, curves_of(comparison), evaluations, ["grpo", "</script><b>vpo"], "A <title>", "vpo compare grpo vpo"
    )
    write_page(folder / "report.html", data)
    return folder / "report.html", comparison, data


class PageParser(HTMLParser):
    """Collects the points of each plot, by its label, and the cells of tables."""

    def __init__(self):
        super().__init__()
        self.plot, self.run, self.points, self.cells, self.lines = None, None, {}, 0, []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "svg":
            self.plot = values.get("aria-label")
        if tag == "g" and "data-run" in values:
            self.run = int(values["data-run"])
        if tag == "circle":
            point = tuple(float(values[f"data-{name}"] or "nan") for name in ("x", "y", "low", "high"))
            self.points.setdefault((self.plot, self.run), []).append(point)
        self.cells += tag == "td"
        if tag == "svg" and (self.plot or "").startswith("maze "):
            self.lines.append(0)
        if tag == "polyline" and (self.plot or "").startswith("maze "):
            self.lines[-1] += 1


def opened(page, width):
    """Open a page in a frame: the parsed page with the width that it takes, and what its console logs."""
    # A headless window is at least 500 wide, a frame has the width that it is set to.
    frame = f'<iframe width="{width}" height="900" srcdoc="{html.escape(page.read_text())}"></iframe>'
    look = """<script>addEventListener("load", () => {
        const inner = document.querySelector("iframe").contentDocument;
        document.body.dataset.width = inner.documentElement.scrollWidth;
        const slider = inner.querySelector("#gallery input");
        if (slider) {
          slider.value = slider.max;
          slider.dispatchEvent(new Event("input"));
        }
        document.body.append(inner.body);
    })</script>"""
    outer = page.with_name(f"opened-{width}.html")
    outer.write_text(f'<!doctype html><meta charset="utf-8"><body>{frame}{look}</body>')
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--window-size=1400,2000", "--virtual-time-budget=2000"]
    done = subprocess.run(
        [*command, "--dump-dom", outer.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    parsed = PageParser()
    parsed.feed(done.stdout.split("</iframe>")[-1])
    (parsed.width,) = re.findall(r'data-width="(\d+)"', done.stdout)
    return parsed, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def best_mean(comparison, group, pair, mix):
    """The mean scores of the answers that are best under a mix of two objectives, one problem at a time."""
    best = []
    for pool in group:
        for name in comparison.problems:
            scores = pool.problems[name].scores_nD[:, [pool.objectives.index(each) for each in pair]].tolist()
            best.append(max(scores, key=lambda row: mix * row[0] + (1 - mix) * row[1]))
    return tuple(sum(row[index] for row in best) / len(best) for index in (0, 1))


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_opens_without_an_error_and_draws_what_was_measured(made, width):
    page, comparison, data = made
    parsed, console = opened(page, width)
    assert console == []
    assert int(parsed.width) <= width  # nothing to scroll aside for
    for run, curves in enumerate(curves_of(comparison)):
        for curve in curves:
            expected = list(zip(curve.budgets, curve.mean, curve.low, curve.high, strict=True))
            assert [pytest.approx(point) for point in expected] == parsed.points[f"by {curve.by}", run]
    x, y = data["fronts"][data["first_front"]]["objectives"]
    for run, group in enumerate(comparison.groups):
        points = [point[:2] for point in parsed.points[f"{x} against {y}", run]]
        assert points[0] == pytest.approx(best_mean(comparison, group, (x, y), 0.02))
        assert points[-1] == pytest.approx(best_mean(comparison, group, (x, y), 0.98))
    assert parsed.lines == [6, 6]  # all six answers of each run are drawn over the maze, the missing one as nothing
    assert [point[:2] for point in parsed.points["diversity", 1]] == [(1, 1.6), (2, 1.7), (3, 1.8)]  # of two seeds
    assert parsed.cells > len(comparison.rows) * 4


def test_the_page_needs_nothing_else_and_carries_its_data(made):
    page, _, data = made
    text = page.read_text()
    assert not re.search(r"(src|href)=|@import|https?://(?!www\.w3\.org)", text)
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1)
    assert json.loads(embedded) == json.loads(json.dumps(data))
    assert "<title>A &lt;title&gt;</title>" in text
    assert "vpo eval vpo-1" in data["commands"]


def test_the_points_of_the_page_are_the_numbers_of_the_table(made):
    _, comparison, data = made
    rows = comparison.at_every_k("best@k", "answers")
    assert rows
    for row in rows:
        for run, value in enumerate(row.values):
            (curve,) = [each for each in data["runs"][run]["curves"] if each["by"] == "answers"]
            assert curve["mean"][curve["budgets"].index(row.metric.k)] == pytest.approx(value.mean)


def pool_of(objectives, scores, set_sizes):
    return ProblemPool("p", objectives, set_sizes, np.asarray(scores, dtype=float), None, None, None, missing=0)


def test_positions_share_a_tie():
    problem = pool_of(("gold", "lava"), [[1, 0], [0, 1], [0.5, 0.5], [0, 0]], (2, 2))
    first, second = positions_of([problem], ("gold", "lava"), None)
    assert (first["wins"], second["wins"]) == (0.75, 0.25)  # a tie, then a win of the first
    assert first["mean"] == [0.75, 0.25]


def test_scores_stand_under_their_own_objective_in_whatever_order_a_pool_has_them():
    problem = pool_of(("lava", "gold"), [[0.1, 0.9]], (1,))
    assert positions_of([problem], ("gold", "lava"), None)[0]["mean"] == [0.9, 0.1]
    (answer,) = answers_of(problem, ("gold", "lava"), {"gold": 1.0}, None)
    assert answer["scores"] == [0.9, 0.1]
    assert answer["value"] == 0.9


def test_a_loss_that_ran_away_leaves_a_gap(tmp_path):
    for name, entropies in (("a", (1.0, float("nan"), None)), ("b", (3.0, float("inf"), 5.0))):
        (tmp_path / name).mkdir()
        rows = [{"step": step, "entropy": entropy} for step, entropy in enumerate(entropies, start=1)]
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert training_curves([tmp_path / "a", tmp_path / "b"]) == {"step": [1, 2, 3], "entropy": [2.0, None, 5.0]}
    (tmp_path / "a" / "metrics.jsonl").write_text("")
    assert training_curves([tmp_path / "a"]) == {}


def test_a_page_is_written_of_any_text(tmp_path):
    write_page(
        tmp_path / "page.html", {"title": "lone \ud800 surrogate".encode("utf-8", "replace").decode(), "x": "\ud800"}
    )
    assert "\\ud800" in (tmp_path / "page.html").read_text()

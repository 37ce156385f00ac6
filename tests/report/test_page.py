"""The page, opened in a headless browser: what is drawn is what was measured, and nothing goes wrong."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from tests.test_compare import make_evaluation
from vpo.evaluations import read_evaluation
from vpo.measure import compare_groups
from vpo.report.curves import curves_of
from vpo.report.data import page_data
from vpo.report.page import write_page

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
    data = page_data(comparison, evaluations, ["grpo", "</script><b>vpo"], "A <title>", "vpo compare grpo vpo")
    write_page(folder / "report.html", data)
    return folder / "report.html", comparison, data


class Drawn(HTMLParser):
    """Collects the points of each plot, by its label, and the cells of tables."""

    def __init__(self):
        super().__init__()
        self.plot, self.run, self.points, self.cells, self.body = None, None, {}, 0, {}

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "svg":
            self.plot = given.get("aria-label")
        if tag == "g" and "data-run" in given:
            self.run = int(given["data-run"])
        if tag == "circle":
            point = tuple(float(given[f"data-{name}"] or "nan") for name in ("x", "y", "low", "high"))
            self.points.setdefault((self.plot, self.run), []).append(point)
        self.cells += tag == "td"
        if tag == "body":
            self.body = given


def opened(page, width):
    """Return what the browser made of a page, what its console said, and how wide it came out."""
    probe = "<script>document.body.dataset.width = document.documentElement.scrollWidth</script></body>"
    copy = page.with_name(f"opened-{width}.html")
    copy.write_text(page.read_text().replace("</body>", probe))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += [
        f"--user-data-dir={page.parent / 'profile'}",
        f"--window-size={width},2000",
        "--dump-dom",
        copy.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    drawn = Drawn()
    drawn.feed(done.stdout)
    return drawn, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_opens_without_an_error_and_draws_what_was_measured(made, width):
    page, comparison, data = made
    drawn, said = opened(page, width)
    assert said == []
    assert int(drawn.body["data-width"]) <= max(width, 500)  # 500 is the least that a headless window has
    for run, curves in enumerate(curves_of(comparison)):
        for curve in curves:
            expected = list(zip(curve.budgets, curve.mean, curve.low, curve.high, strict=True))
            assert [pytest.approx(point) for point in expected] == drawn.points[f"by {curve.by}", run]
    x, y = data["fronts"][data["first_front"]]["objectives"]
    for run, points in enumerate(data["fronts"][data["first_front"]]["runs"]):
        assert [point[:2] for point in drawn.points[f"{x} against {y}", run]] == [pytest.approx(p) for p in points]
    assert [point[:2] for point in drawn.points["diversity", 1]] == [(1, 1.6), (2, 1.7), (3, 1.8)]  # of two seeds
    assert drawn.cells > len(comparison.measures) * 4


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
    for measure in comparison.measures:
        if (measure.section, measure.by) != ("best@k", "answers"):
            continue
        for run, value in enumerate(measure.values):
            (curve,) = [each for each in data["runs"][run]["curves"] if each["by"] == "answers"]
            assert curve["mean"][curve["budgets"].index(measure.at)] == pytest.approx(value.mean)


def test_positions_share_a_tie():
    from vpo.report.data import _positions

    problem = type("Problem", (), {})()
    import numpy as np

    problem.set_sizes_N, problem.objectives = (2, 2), ("gold", "lava")
    problem.scores_nD = np.asarray([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    first, second = _positions([problem], None)
    assert (first["wins"], second["wins"]) == (0.75, 0.25)  # a tie, then a win of the first
    assert first["mean"] == [0.75, 0.25]

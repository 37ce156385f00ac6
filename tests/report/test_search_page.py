"""The page of searches, opened in a headless browser."""

import pytest

pytest.importorskip("transformers")

from tests.report.browser import needs_browser, opened
from vpo.cli.main import main
from vpo.search.result import families_of, read_result

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("searches")
    command = ["search", "embedded", "--task", "maze", "--set", "size=7", "--problems", "4", "--target", "gold=1"]
    assert main([*command, "--answers", "3", "--iterations", "6", "--out", str(out)]) == 0
    return out


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_draws_what_was_solved_and_the_family(folder, width):
    page, console = opened(folder / "report.html", width)
    assert console == []
    assert page.seen["width"] <= width
    for run, name in enumerate(("embedded-evolve", "embedded-best_of_n")):
        result = read_result(folder / name)
        for unit in ("iterations", "answers", "generations", "tokens"):
            points = page.points[f"by {unit}", run]
            expected = result.curve(unit, [point[0] for point in points])
            assert [point[1:] for point in points] == [
                pytest.approx((value.mean, value.low, value.high)) for value in expected
            ]
    tree = page.points["family tree", 1]  # the last group before it was that of the other search
    result = read_result(folder / "embedded-evolve")
    sizes = {len(members) for case, members in families_of(folder / "embedded-evolve").items() if case in result.solved}
    assert len(tree) in sizes

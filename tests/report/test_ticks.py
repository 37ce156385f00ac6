"""The marks of axes, in a headless browser: they end whatever the range."""

import html
import json
import re

import pytest

from tests.report.browser import dumped, needs_browser
from vpo.report.embedding import assets

RANGES = {
    (0, 1): [0, 0.2, 0.4, 0.6, 0.8, 1],
    (-3, 4): [-2, 0, 2, 4],
    (0, 1000): [0, 200, 400, 600, 800, 1000],
    (7, 7): [],
}


@needs_browser
def test_ticks_of_any_range(tmp_path):
    ranges = [*RANGES, (4e15, 4e15 + 1), (1e300, 1.1e300), (-1e308, 1e308)]  # adding 1 to 4e15 / 0.2 changes nothing
    page = tmp_path / "page.html"
    page.write_text(f"""<!doctype html><meta charset="utf-8"><body><script>{assets(["ticks.js"])}
        const made = {json.dumps(ranges)}.map(([from, to]) => ticks(from, to, 5));
        document.body.dataset.made = JSON.stringify(made);</script></body>""")
    (made,) = re.findall(r'data-made="(.*?)"', dumped(page)[0])
    shown = json.loads(html.unescape(made))
    assert [pytest.approx(each) for each in RANGES.values()] == shown[: len(RANGES)]
    assert all(len(each) <= 6 for each in shown)

"""The changes between two texts, and the range of a plot with outliers, in a headless browser."""

import html
import json
import re
from random import Random

import pytest

from tests.report.browser import dumped, needs_browser
from vpo.report.embedding import assets

RANGES = {  # values, and where their range begins
    (0.0, 0.0, 1.0): 0.0,
    (2.0, 2.0, 2.0): 2.0,
    (-1e6, *range(20)): -0.95,  # 5% of 0..19 below 0, on which the outlier stands
    tuple(range(-30, 0)): -30,
}


@needs_browser
def test_changes_make_one_text_of_the_other(tmp_path):
    random = Random(0)
    texts = [
        ["\n".join(random.choice("abc ") for _ in range(random.randrange(9))) for _ in range(2)] for _ in range(200)
    ]
    page = tmp_path / "page.html"
    page.write_text(f"""<!doctype html><meta charset="utf-8"><body><script>{assets(["dom.js", "scale.js", "diff.js"])}
        const made = {json.dumps(texts)}.map(([text, other]) => lineDiff(text, other));
        const floors = {json.dumps(list(RANGES))}.map(floorOf);
        document.body.dataset.made = JSON.stringify([made, floors]);</script></body>""")
    (found,) = re.findall(r'data-made="(.*?)"', dumped(page)[0], re.DOTALL)
    made, floors = json.loads(html.unescape(found))
    for (text, other), rows in zip(texts, made, strict=True):
        assert [line for sign, line in rows if sign != "-"] == text.split("\n")
        assert [line for sign, line in rows if sign != "+"] == other.split("\n")
        signs = "".join(sign for sign, _ in rows)
        assert "+-" not in signs  # what is gone stands before what is new
        assert "=" in signs or not set(text.split("\n")) & set(other.split("\n"))
    assert floors == pytest.approx(list(RANGES.values()))

"""A page in a headless browser: what a reader does with it, and what it then shows."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


class PageParser(HTMLParser):
    """Collects the points of each plot, by its label, and the cells of tables."""

    def __init__(self):
        super().__init__()
        self.plot, self.run, self.points, self.cells, self.lines, self.seen = None, None, {}, 0, [], {}

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "svg":
            self.plot = values.get("aria-label")
        if tag == "g" and "data-run" in values:
            self.run = int(values["data-run"])
        if tag == "circle" and "data-x" in values:
            point = tuple(float(values[f"data-{name}"] or "nan") for name in ("x", "y", "low", "high"))
            self.points.setdefault((self.plot, self.run), []).append(point)
        self.cells += tag == "td"
        if tag == "svg" and (self.plot or "").startswith("maze "):
            self.lines.append(0)
        if tag == "polyline" and (self.plot or "").startswith("maze "):
            self.lines[-1] += 1


# What a reader does and sees, by name; each runs in the page as it was opened.
LOOKS = """
    const inner = document.querySelector("iframe").contentDocument, view = inner.defaultView;
    const text = (where) => inner.querySelector(where)?.textContent ?? null;
    const press = (where, key) => where.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true }));
    const seen = {};
    const curve = inner.querySelector("svg.plot"), frame = curve.getBoundingClientRect();
    const readout = () => curve.parentElement.querySelector(".readout").innerText;
    press(curve, "ArrowRight");
    seen.first = readout();
    press(curve, "End");
    seen.last = readout();
    press(curve, "Escape");
    seen.escaped = readout();
    const at = { clientX: frame.left + frame.width - 20, clientY: frame.top + 50 };
    curve.dispatchEvent(new view.PointerEvent("pointermove", at));
    seen.hovered = readout();
    curve.dispatchEvent(new view.PointerEvent("pointerleave"));
    seen.verdict = text("header #verdict");
    seen.facts = text("#facts");
    seen.sections = [...inner.querySelectorAll("main > section, footer")].map((each) => each.id);
    seen.links = [...inner.querySelectorAll("#contents a")].map((each) => each.getAttribute("href").slice(1));
    seen.anchors = [...inner.querySelectorAll("h2 .anchor")].map((each) => each.getAttribute("href").slice(1));
    seen.made = (inner.body.innerText.match(/made by/gi) ?? []).length;
    seen.marks = [...inner.querySelectorAll("#gallery mark")].map((each) => each.textContent);
    seen.texts = [...inner.querySelectorAll("#gallery .answer pre")].map((each) => each.textContent);
    seen.question = text("#gallery .question");
    seen.sets = [...inner.querySelectorAll("#gallery .set h4")].map((each) => each.textContent);
    seen.scores = [...inner.querySelectorAll("#gallery .score")].map((each) => each.textContent);
    seen.crossings = [...inner.querySelectorAll("#best .crossing title")].map((each) => each.textContent);
    seen.ticks = [...inner.querySelectorAll("#best svg")].map((each) =>
      [...each.querySelectorAll("text[text-anchor=end]")].map((tick) => tick.textContent).join());
    seen.smooth = inner.querySelectorAll("#training .smooth").length;
    seen.cards = [...inner.querySelectorAll(".card")].map((each) => each.textContent);
    for (const each of inner.querySelectorAll("details")) each.open = true;
    seen.width = inner.documentElement.scrollWidth;
    view.scrollTo(0, inner.documentElement.scrollHeight);
    const legend = inner.getElementById("legend").getBoundingClientRect();
    seen.legend = legend.bottom > 0 && legend.top < view.innerHeight;
    const box = inner.querySelector("#legend input");
    box.click();
    seen.hidden = inner.querySelector("#best g[data-run='0']")?.style.display;
    press(curve, "Home");
    seen.without = readout();
    box.click();
    if (inner.getElementById("descent")) {
      const texts = (where) => [...inner.querySelectorAll(where)].map((each) => each.textContent);
      const candidate = () => ({
        title: text(".candidate h3"),
        text: text(".candidate"),
        added: texts(".diff .added"),
        removed: texts(".diff .removed"),
        line: [...inner.querySelectorAll(".line button")].map((each) => +each.dataset.number),
        drawn: inner.querySelectorAll(".candidate polyline").length,
      });
      const tree = inner.querySelector(".family"), key = (name) => (press(tree, name), candidate());
      const numbers = [...tree.querySelectorAll("circle[data-number]")];
      seen.family = numbers.length;
      seen.problems = texts("#descent select[aria-label=problem] option");
      seen.best = candidate();
      seen.parent = key("ArrowUp");
      seen.start = key("Home");
      seen.next = key("ArrowRight");
      const spot = numbers[numbers.length - 1].getBoundingClientRect();
      const beside = { clientX: spot.x + spot.width / 2 + 1, clientY: spot.y + spot.height / 2 + 1 };
      tree.dispatchEvent(new view.MouseEvent("click", beside));
      seen.clicked = candidate();
      const slider = inner.querySelector("#nondominated input");
      const front = (value) => {
        slider.value = value;
        slider.dispatchEvent(new view.Event("input"));
        const rows = [...inner.querySelectorAll("#nondominated tbody tr")];
        return rows.map((row) => [...row.children].slice(1).map((each) => +each.textContent));
      };
      seen.fronts = [front(slider.min), front(slider.max)];
      const search = inner.querySelector("#descent select[aria-label=search]");
      search.value = 1;
      search.dispatchEvent(new view.Event("change"));
      seen.other = inner.querySelectorAll(".family circle[data-number]").length;
    }
"""


def opened(page, width):
    """Open a page in a frame: the parsed page with what is seen in it, and what its console logs."""
    # A headless window is at least 500 wide, a frame has the width that it is set to.
    frame = f'<iframe width="{width}" height="900" srcdoc="{html.escape(page.read_text())}"></iframe>'
    look = (
        f"""<script>addEventListener("load", () => {{{LOOKS}
        document.body.dataset.seen = JSON.stringify(seen);"""
        + """
        const slider = inner.querySelector("#gallery input");
        if (slider) {
          slider.value = slider.max;
          slider.dispatchEvent(new Event("input"));
        }
        document.body.append(inner.body);
    })</script>"""
    )
    outer = page.with_name(f"opened-{width}.html")
    outer.write_text(f'<!doctype html><meta charset="utf-8"><body>{frame}{look}</body>')
    shown, console = dumped(outer)
    parsed = PageParser()
    parsed.feed(shown.split("</iframe>")[-1])
    (seen,) = re.findall(r'data-seen="(.*?)"', shown)
    parsed.seen = json.loads(html.unescape(seen))
    return parsed, console


def dumped(page):
    """Open a file: its HTML after its scripts have run, and what its console logs."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--window-size=1400,2000", "--virtual-time-budget=2000"]
    done = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, check=True, timeout=600
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def page_json(page):
    """The data inside a page."""
    (embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(embedded)

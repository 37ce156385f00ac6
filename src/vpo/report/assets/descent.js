// Who descended from whom: a tree of the candidates of a case, the line of the chosen one, and its card.
function showDescent(section) {
  if (!cases.length) return section.remove();
  const longest = (at) => cases[at].runs.reduce((best, each, run) => (each && each.line > (cases[at].runs[best]?.line ?? -1) ? run : best), 0);
  chosen.run = longest(0);
  if (data.search.families.note) section.querySelector("p").append(` ${data.search.families.note}`);
  const search = choice("search", data.runs.map((run) => run.name));
  search.addEventListener("change", () => {
    chosen.run = +search.value;
    chooseCase(chosen.at);
  });
  section.querySelector(".controls").append(caseChoice(), element("label", {}, "search ", search));
  const draw = () => {
    search.value = chosen.run;
    [...search.options].forEach((option, run) => (option.disabled = !families(chosen.at)[run]));
    const tree = treePanel(choose);
    section.querySelector(".tree").replaceChildren(tree.panel);
    function choose(number) {
      chosen.number = number;
      tree.mark();
      section.querySelector(".line").replaceChildren(...lineCards(choose));
      section.querySelector(".candidate").replaceChildren(...candidateCard(choose));
      const line = section.querySelector(".line");
      line.scrollLeft = line.scrollWidth;
    }
    choose(chosen.number);
  };
  watchers.push(draw);
  chooseCase(0);
  matchMedia(WIDE).addEventListener("change", draw);
}
const WIDE = "(min-width: 700px)";
const REACH = 30; // from the pointer to a candidate, in pixels

// Every candidate by iteration and value, with lines from its parents.
function treePanel(choose) {
  const { members, total } = family(), all = [...members.values()];
  const scored = all.filter((each) => each.value !== null);
  const [width, height] = matchMedia(WIDE).matches ? [620, 340] : [380, 280];
  const frame = { width, height, left: 46, right: 12, top: 12, bottom: scored.length < all.length ? 52 : 36 };
  const spots = placed(all, scored, frame), { px, py, y0 } = spots;
  const svg = shape("svg", { class: "family", viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": "family tree" });
  treeAxes(svg, frame, all, scored, spots);
  const edges = all.flatMap((each) => parents(each, members).map((parent, at) => ({ each, parent, line: shape("line", { x1: px(parent), y1: py(parent), x2: px(each), y2: py(each), "stroke-dasharray": at ? "4 3" : "none" }) })));
  const halo = shape("circle", { class: "halo", r: 8 });
  const dots = all.map((each) => {
    const dot = shape("circle", { cx: px(each), cy: py(each), "data-number": each.number });
    dot.append(shape("title", {}, `${titleOf(each)}: ${each.value === null ? "not scored" : precise(each.value)}`));
    return { each, dot };
  });
  svg.style.setProperty("--run", colour(chosen.run));
  svg.append(...edges.map(({ line }) => line), halo, ...dots.map(({ dot }) => dot));

  function mark() {
    const member = members.get(chosen.number);
    const before = relatives(member, (each) => parents(each, members)), after = relatives(member, (each) => each.children);
    const kind = (each) => (before.has(each) ? "before" : after.has(each) ? "after" : "");
    const edge = (each, parent) => (before.has(each) ? "before" : after.has(each) && after.has(parent) ? "after" : "");
    for (const { each, parent, line } of edges) line.setAttribute("class", `${edge(each, parent)} ${each.value === null ? "unscored" : ""}`);
    for (const { each, dot } of dots) {
      dot.setAttribute("class", [kind(each), each.solved ? "solved" : "", each.value === null ? "unscored" : each.value < y0 ? "below" : ""].join(" "));
      dot.setAttribute("r", before.has(each) ? 4.5 : 3);
    }
    halo.setAttribute("cx", px(member));
    halo.setAttribute("cy", py(member));
  }
  svg.addEventListener("click", (event) => {
    const shown = svg.getBoundingClientRect(), zoom = width / shown.width;
    const [x, y] = [(event.clientX - shown.left) * zoom, (event.clientY - shown.top) * zoom];
    const distance = (each) => Math.hypot(px(each) - x, py(each) - y);
    const nearest = all.reduce((best, each) => (distance(each) < distance(best) ? each : best));
    if (distance(nearest) < REACH * zoom) choose(nearest.number);
  });
  svg.addEventListener("keydown", (event) => {
    const next = neighbour(event.key);
    if (!next) return;
    event.preventDefault();
    choose(next.number);
  });
  const title = `${all.length < total ? `${all.length.toLocaleString("en")} of ` : ""}${counted(total, "candidate")} of ${data.runs[chosen.run].name}`;
  return { panel: element("div", { class: "panel" }, element("h3", {}, title), svg), mark };
}
// The candidate that a key leads to from the chosen one.
function neighbour(key) {
  const { members, end } = family(), all = [...members.values()], member = members.get(chosen.number);
  const at = all.indexOf(member);
  return { ArrowRight: all[at + 1], ArrowLeft: all[at - 1], ArrowUp: parents(member, members)[0], ArrowDown: member.children[0], Home: all[0], End: members.get(end) }[key];
}
// Where candidates stand: those of one iteration side by side, those without a score below all others.
function placed(all, scored, { width, height, left, right, top, bottom }) {
  const values = scored.map((each) => each.value);
  const [y0, y1] = values.length ? [floorOf(values), Math.max(...values)] : [0, 1];
  const columns = new Map();
  for (const each of all) columns.has(step(each)) ? columns.get(step(each)).push(each) : columns.set(step(each), [each]);
  const first = Math.min(...columns.keys()), wide = (width - left - right) / (Math.max(...columns.keys()) - first + 1);
  const across = new Map();
  for (const [at, some] of columns) some.forEach((each, index) => across.set(each, left + (at - first + (index + 1) / (some.length + 1)) * wide));
  const py = ({ value }) => (value === null ? height - 28 : height - bottom - ((Math.max(value, y0) - y0) / (y1 - y0 || 1)) * (height - bottom - top));
  return { px: (each) => across.get(each), py, y0, y1, middle: (at) => left + (at - first + 0.5) * wide };
}
function treeAxes(svg, { width, height, left, right }, all, scored, { py, y0, y1, middle }) {
  const beside = (y, text) => svg.append(shape("text", { x: left - 5, y: y + 4, "text-anchor": "end" }, text));
  const lower = scored.some((each) => each.value < y0), bottom = py({ value: y0 });
  for (const value of y0 < y1 ? ticks(y0, y1, 5) : [y0]) {
    const y = py({ value });
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: y, y2: y }));
    if (!lower || y < bottom - 12) beside(y, y0 < y1 ? tickText(value, 1e3) : short(value));
  }
  if (lower) beside(bottom, "lower");
  if (scored.length < all.length) beside(height - 28, "none");
  const steps = all.map(step), first = Math.min(...steps), last = Math.max(...steps);
  const between = ticks(first, last, 6).filter((each) => Number.isInteger(each) && Math.min(each - first, last - each) > (last - first) / 12);
  for (const each of new Set([first, ...between, last])) svg.append(shape("text", { x: middle(each), y: height - 12, "text-anchor": "middle" }, each || "start"));
  svg.append(shape("text", { x: (left + width) / 2, y: height - 1, "text-anchor": "middle" }, "iteration"));
  svg.append(shape("text", { x: 10, y: height / 2, transform: `rotate(-90 10 ${height / 2})`, "text-anchor": "middle" }, "value"));
}
const titleOf = (member) => `${member.number}: ${when(member)}${member.iteration < 0 ? "" : `, ${member.operator}`}`;
// The line that leads to the chosen candidate, a card for each.
function lineCards(choose) {
  const { members } = family();
  return lineOf(members.get(chosen.number), members).map((each) => {
    const parent = members.get(each.parent);
    const card = element("button", { type: "button", "aria-current": each.number === chosen.number, "data-number": each.number });
    if (cases[chosen.at].svg) card.append(pictureOf(each));
    card.append(element("b", {}, each.value === null ? "not scored" : precise(each.value)), change(each.value, parent?.value), element("small", {}, titleOf(each)));
    card.addEventListener("click", () => choose(each.number));
    return card;
  });
}
// By how much a number differs from another, in colour.
function change(value, before) {
  const difference = value - before;
  if (value === null || before === null || before === undefined || Math.abs(difference) <= 1e-9 * Math.max(1, Math.abs(value))) return "";
  return element("span", { class: difference > 0 ? "better" : "worse" }, `${difference > 0 ? "+" : ""}${precise(difference)}`);
}
// The picture of a case with a candidate in it, and its parents beneath.
function pictureOf(member, ...others) {
  const holder = element("div", { class: "picture" });
  holder.innerHTML = cases[chosen.at].svg; // made by the task; no text of a model is in it
  const draw = (path, look) => holder.firstElementChild.append(shape("polyline", { points: path, fill: "none", stroke: colour(chosen.run), "stroke-linejoin": "round", ...look }));
  for (const other of others) draw(other.path, { "stroke-width": 0.1, "stroke-dasharray": "0.2 0.15", opacity: 0.7 });
  draw(member.path, { "stroke-width": 0.16 });
  return holder;
}

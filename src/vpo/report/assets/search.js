// Searches: what was solved within which budget, and how one solution evolved.
function showSearch() {
  const section = document.getElementById("search");
  if (!data.search) return section.remove();
  const range = rangeOf(data.search.curves.flatMap(({ runs }) => runs.map((curve) => ({ y: curve.mean, low: curve.low, high: curve.high }))));
  for (const { unit, runs } of data.search.curves) {
    const lines = runs.map((curve, run) => ({ run, x: curve.budgets, y: curve.mean, low: curve.low, high: curve.high }));
    section.querySelector(".panels").append(plot(`by ${unit}`, lines, { log: true, xLabel: unit, yLabel: "solved", range, cross: true }));
  }
  for (const family of data.search.families) {
    const holder = element("div", { "data-run": family.run }, element("h3", {}, `${data.runs[family.run].name}: how ${family.case} was solved`));
    const panels = element("div", { class: "panels" }, tree(family));
    for (const each of family.members.filter((member) => member.ancestor)) {
      const panel = element("div", { class: "panel" }, element("h3", {}, `iteration ${each.iteration + 1}, ${each.operator}: ${short(each.value)}`));
      if (family.svg) {
        const holder = element("div", { class: "picture" });
        holder.innerHTML = family.svg; // made by the task
        panel.append(holder);
        holder.firstElementChild.append(shape("polyline", { points: each.path, fill: "none", stroke: colour(family.run), "stroke-width": 0.16, "stroke-linejoin": "round" }));
      } else panel.append(element("pre", { tabindex: 0 }, each.answer ?? "(missing)"));
      panels.append(panel);
    }
    holder.append(panels);
    section.querySelector(".families").append(holder);
  }
}
// Every candidate by iteration and value, with a line from its parent; ancestors of the solution are opaque.
function tree({ run, members }) {
  const [width, height, left, bottom, top, right] = [380, 250, 44, 34, 8, 10];
  const last = Math.max(...members.map((each) => each.iteration), 1);
  const values = members.map((each) => each.value);
  const [least, most] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
  const px = (each) => left + (each.iteration / last) * (width - left - right);
  const py = (each) => height - bottom - ((each.value - least) / (most - least)) * (height - bottom - top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "family tree" });
  for (const each of [...members].sort((a, b) => a.ancestor - b.ancestor)) {
    const parent = each.parent === null ? null : members[each.parent];
    const opacity = each.ancestor ? 1 : 0.25;
    if (parent) svg.append(shape("line", { x1: px(parent), y1: py(parent), x2: px(each), y2: py(each), stroke: colour(run), opacity, "stroke-width": each.ancestor ? 2 : 1 }));
    const dot = shape("circle", { cx: px(each), cy: py(each), r: each.ancestor ? 4 : 2.5, fill: colour(run), opacity });
    Object.assign(dot.dataset, { number: each.number, parent: each.parent ?? "", x: each.iteration, y: each.value, low: "", high: "" });
    dot.append(shape("title", {}, `iteration ${each.iteration + 1}, ${each.operator}: ${short(each.value)}`));
    svg.append(dot);
  }
  for (const value of [least, most]) svg.append(shape("text", { x: left - 5, y: py({ value }) + 4, "text-anchor": "end" }, short(value)));
  for (const iteration of [0, last]) svg.append(shape("text", { x: px({ iteration }), y: height - bottom + 14, "text-anchor": "middle" }, iteration + 1));
  svg.append(shape("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "iteration"));
  svg.append(shape("text", { x: 12, y: height / 2, transform: `rotate(-90 12 ${height / 2})`, "text-anchor": "middle" }, "value"));
  return element("div", { class: "panel" }, element("h3", {}, "every candidate"), svg);
}

"use strict";
// Draws the page from the JSON inside it. Every point has its numbers in data- attributes, for tests and scripts.
const data = JSON.parse(document.getElementById("data").textContent);
const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#A6761D", "#808080", "#E7298A"];
const colour = (run) => colours[run % colours.length];
const dashes = (run) => ["none", "6 3", "2 3"][Math.floor(run / colours.length) % 3];
const bands = data.runs.length <= 4; // more would hide each other; the tables have all intervals
const hidden = new Set();

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function shape(tag, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
const short = (value) => (value === null ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));

// A panel with lines. Each line: run, x, y, and optionally low and high.
function plot(title, lines, { log = false, xLabel = "", yLabel = "", marks = false } = {}) {
  const [width, height, left, bottom, top, right] = [380, 250, 44, 34, 8, 10];
  lines = lines.map((line) => {
    const known = line.x.map((_, i) => i).filter((i) => line.x[i] !== null && line.y[i] !== null);
    const pick = (values) => values && known.map((i) => values[i]);
    return { run: line.run, x: pick(line.x), y: pick(line.y), low: pick(line.low), high: pick(line.high) };
  });
  const xs = lines.flatMap((line) => line.x);
  const ys = lines.flatMap((line) => [...line.y, ...(line.low ?? []), ...(line.high ?? [])]).filter((y) => y !== null);
  const panel = element("div", { class: "panel" }, element("h3", {}, title));
  if (!xs.length) return panel;
  const scale = log ? Math.log : (value) => value;
  let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (y1 - y0 < 1e-9) [y0, y1] = [y0 - 0.05, y1 + 0.05];
  const margin = 0.05 * (y1 - y0);
  [y0, y1] = [y0 - margin, y1 + margin];
  const px = (x) => left + ((scale(x) - scale(x0)) / (scale(x1) - scale(x0) || 1)) * (width - left - right);
  const py = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - top);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const y of ticks(y0, y1, 5)) {
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: py(y), y2: py(y) }));
    svg.append(shape("text", { x: left - 5, y: py(y) + 4, "text-anchor": "end" }, +y.toFixed(6)));
  }
  for (const x of log ? logTicks(x0, x1) : ticks(x0, x1, 5))
    svg.append(shape("text", { x: px(x), y: height - bottom + 14, "text-anchor": "middle" }, +x.toFixed(6)));
  svg.append(shape("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, xLabel));
  if (yLabel) svg.append(shape("text", { x: 12, y: height / 2, transform: `rotate(-90 12 ${height / 2})`, "text-anchor": "middle" }, yLabel));
  for (const line of lines) {
    const group = shape("g", { "data-run": line.run });
    const points = line.x.map((x, i) => `${px(x).toFixed(1)},${py(line.y[i]).toFixed(1)}`);
    if (bands && line.low && line.low[0] !== null) {
      const back = line.x.map((x, i) => `${px(x).toFixed(1)},${py(line.low[i]).toFixed(1)}`).reverse();
      const band = line.x.map((x, i) => `${px(x).toFixed(1)},${py(line.high[i]).toFixed(1)}`);
      group.append(shape("polygon", { points: [...band, ...back].join(" "), fill: colour(line.run), opacity: 0.15 }));
    }
    group.append(shape("polyline", { points: points.join(" "), fill: "none", stroke: colour(line.run), "stroke-width": 2, "stroke-dasharray": dashes(line.run) }));
    line.x.forEach((x, i) => {
      const dot = shape("circle", { cx: px(x), cy: py(line.y[i]), r: marks || line.x.length < 2 ? 3 : 5, fill: colour(line.run) });
      if (!marks && line.x.length > 1) dot.setAttribute("fill-opacity", 0);
      Object.assign(dot.dataset, { x, y: line.y[i], low: line.low?.[i] ?? "", high: line.high?.[i] ?? "" });
      const band = line.low && line.low[i] !== null ? ` [${short(line.low[i])}, ${short(line.high[i])}]` : "";
      dot.append(shape("title", {}, `${data.runs[line.run].name}: ${short(x)} → ${short(line.y[i])}${band}`));
      group.append(dot);
    });
    svg.append(group);
  }
  panel.append(svg);
  return panel;
}
function ticks(from, to, count) {
  const rough = (to - from) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  const values = [];
  for (let at = Math.ceil(from / step); at * step <= to + 1e-12; at++) values.push(at * step);
  return values;
}
function logTicks(from, to) {
  const values = [];
  for (let power = -3; power < 9; power++)
    for (const each of [1, 3]) if (each * 10 ** power >= from * 0.999 && each * 10 ** power <= to * 1.001) values.push(each * 10 ** power);
  return values;
}

function showLegend() {
  const legend = document.getElementById("legend");
  data.runs.forEach((run, index) => {
    const box = element("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => {
      box.checked ? hidden.delete(index) : hidden.add(index);
      hide();
    });
    legend.append(element("label", {}, box, element("i", { style: `background:${colour(index)}` }), run.name));
  });
}
function hide() {
  for (const each of document.querySelectorAll("[data-run]")) each.style.display = hidden.has(+each.dataset.run) ? "none" : "";
}

function showBest() {
  const section = document.getElementById("best");
  if (!data.runs.some((run) => run.curves.length)) return section.remove();
  const panels = section.querySelector(".panels");
  for (const by of ["answers", "generations", "tokens"]) {
    const lines = data.runs.flatMap((run, index) => {
      const curve = run.curves.find((each) => each.by === by);
      return curve ? [{ run: index, x: curve.budgets, y: curve.mean, low: curve.low, high: curve.high }] : [];
    });
    if (lines.length) panels.append(plot(`by ${by}`, lines, { log: true, xLabel: by, yLabel: "best@k" }));
  }
}

function showSearch() {
  const section = document.getElementById("search");
  if (!data.search) return section.remove();
  for (const { unit, runs } of data.search.curves) {
    const lines = runs.map((curve, run) => ({ run, x: curve.budgets, y: curve.mean, low: curve.low, high: curve.high }));
    section.querySelector(".panels").append(plot(`by ${unit}`, lines, { log: true, xLabel: unit, yLabel: "solved" }));
  }
  for (const family of data.search.families) {
    const holder = element("div", { "data-run": family.run }, element("h3", {}, `${data.runs[family.run].name}: how ${family.case} was solved`));
    const panels = element("div", { class: "panels" }, tree(family));
    for (const each of family.members.filter((member) => member.ancestor)) {
      const panel = element("div", { class: "panel" }, element("h3", {}, `iteration ${each.iteration + 1}, ${each.operator}: ${short(each.value)}`));
      if (family.svg) {
        panel.insertAdjacentHTML("beforeend", family.svg);
        panel.lastElementChild.append(shape("polyline", { points: each.path, fill: "none", stroke: colour(family.run), "stroke-width": 0.16, "stroke-linejoin": "round" }));
      } else panel.append(element("p", {}, each.answer ?? "(missing)"));
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

function showFront() {
  const section = document.getElementById("front");
  if (data.objectives.length < 2) return section.remove();
  const pairs = data.fronts.map((front) => front.objectives);
  const choice = element("select", { "aria-label": "objectives" });
  pairs.forEach(([x, y], index) => choice.append(element("option", { value: index }, `${x} and ${y}`)));
  const draw = () => {
    const front = data.fronts[+choice.value];
    const lines = front.runs.map((points, run) => ({ run, x: points.map((p) => p[0]), y: points.map((p) => p[1]) }));
    const [x, y] = front.objectives;
    section.querySelector(".panels").replaceChildren(plot(`${x} against ${y}`, lines, { xLabel: x, yLabel: y, marks: true }));
    hide();
  };
  choice.value = data.first_front;
  choice.addEventListener("change", draw);
  section.querySelector(".controls").append(element("label", {}, "objectives ", choice));
  draw();
}

function showPositions() {
  const section = document.getElementById("positions");
  const sets = data.runs.map((run, index) => [run, index]).filter(([run]) => run.positions.length > 1);
  if (!sets.length) return section.remove();
  for (const [run, index] of sets) {
    const rows = run.positions.map((each, at) => [at + 1, ...each.mean, each.wins]);
    const panel = element("div", { class: "panel", "data-run": index }, element("h3", {}, run.name), table(["answer", ...data.objectives, "best of its set"], rows));
    section.querySelector(".panels").append(panel);
  }
}

function showTraining() {
  const section = document.getElementById("training");
  const names = [...new Set(data.runs.flatMap((run) => Object.keys(run.training)))].filter((name) => name !== "step");
  if (!names.length) return section.remove();
  for (const name of names) {
    const lines = data.runs.flatMap((run, index) => (run.training[name] ? [{ run: index, x: run.training.step, y: run.training[name] }] : []));
    section.querySelector(".panels").append(plot(name, lines, { xLabel: "step" }));
  }
}

function showGallery() {
  const section = document.getElementById("gallery");
  if (!data.gallery.length) return section.remove();
  const most = Math.max(...data.gallery.flatMap((each) => each.runs.map((run) => run.length)));
  const choice = element("select", { "aria-label": "problem" });
  data.gallery.forEach((each, index) => choice.append(element("option", { value: index }, each.problem)));
  const slider = element("input", { type: "range", min: 1, max: most, value: Math.min(5, most), "aria-label": "k" });
  const count = element("output");
  const draw = () => {
    const scene = data.gallery[+choice.value], k = +slider.value;
    count.textContent = `k = ${k}`;
    const panels = scene.runs.map((answers, run) => {
      const shown = answers.slice(0, k);
      const best = shown.reduce((top, each, at) => (top < 0 || each.value > shown[top].value ? at : top), -1);
      const panel = element("div", { class: "panel", "data-run": run });
      panel.append(element("h3", {}, `${data.runs[run].name}: best of ${shown.length} ${best < 0 ? "–" : short(shown[best].value)}`));
      if (scene.svg) {
        const holder = element("div");
        holder.innerHTML = scene.svg;
        const svg = holder.firstElementChild;
        shown.forEach((each, at) => {
          const line = shape("polyline", { points: each.path, fill: "none", stroke: colour(run), "stroke-linejoin": "round" });
          line.setAttribute("stroke-width", at === best ? 0.16 : 0.07);
          line.setAttribute("opacity", at === best ? 1 : 0.35);
          svg.append(line);
        });
        panel.append(svg);
      } else for (const each of shown) panel.append(element("p", {}, `${short(each.value)} ${each.text ?? "(missing)"}`));
      panel.append(element("p", {}, best < 0 ? "" : data.objectives.map((name, at) => `${name} ${short(shown[best].scores[at])}`).join(", ")));
      return panel;
    });
    section.querySelector(".panels").replaceChildren(...panels);
    hide();
  };
  choice.addEventListener("change", draw);
  slider.addEventListener("input", draw);
  section.querySelector(".controls").append(element("label", {}, "problem ", choice), element("label", {}, slider, " ", count));
  draw();
}

// A table whose columns sort. A cell is text, a number, or {mean, low, high, certain}.
function table(head, rows) {
  const body = element("tbody");
  const value = (cell) => (cell !== null && typeof cell === "object" ? cell.mean : cell);
  const text = (cell) => {
    if (cell === null) return "–";
    if (typeof cell === "number") return Number.isInteger(cell) ? `${cell}` : cell.toFixed(3);
    if (typeof cell !== "object") return cell;
    const band = cell.low === null ? "" : ` [${cell.low.toFixed(3)}, ${cell.high.toFixed(3)}]`;
    return element("span", {}, cell.mean.toFixed(3), element("small", {}, band), cell.certain ? " *" : "");
  };
  const fill = (shown) => body.replaceChildren(...shown.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, text(cell))))));
  const heads = head.map((name, column) => {
    const cell = element("th", { tabindex: 0 }, name);
    const sort = () => {
      const order = cell.dataset.order === "1" ? -1 : 1;
      for (const each of heads) {
        delete each.dataset.order;
        each.removeAttribute("aria-sort");
      }
      cell.dataset.order = order;
      cell.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
      const known = rows.filter((row) => row[column] !== null), unknown = rows.filter((row) => row[column] === null);
      known.sort((a, b) => order * (typeof value(a[column]) === "number" ? value(a[column]) - value(b[column]) : `${value(a[column])}`.localeCompare(`${value(b[column])}`, undefined, { numeric: true })));
      fill([...known, ...unknown]);
    };
    cell.addEventListener("click", sort);
    cell.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    return cell;
  });
  fill(rows);
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
}

function showTables() {
  const holder = document.querySelector("#tables .tables");
  for (const each of data.tables) holder.append(element("h3", {}, each.title), table(each.head, each.rows));
}

document.getElementById("summary").textContent = [data.summary, ...data.notes.map((note) => `note: ${note}`)].join("; ");
showLegend();
showBest();
showSearch();
showFront();
showPositions();
showTraining();
showGallery();
showTables();
for (const command of data.commands) document.querySelector("#commands div").append(element("p", {}, element("code", {}, command)));
for (const [section, command] of Object.entries(data.figure_commands)) {
  const shown = document.getElementById(section);
  if (shown) shown.append(element("p", {}, "made by ", element("code", {}, command)));
}

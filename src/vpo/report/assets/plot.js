// A panel with lines. Each line: run, x, y, and optionally low and high. Every point has its numbers in data- attributes.
const AREA = { width: 380, height: 250, left: 44, bottom: 34, top: 8, right: 10 };
const SMOOTH_FROM = 8; // points of a line

function plot(title, given, options = {}) {
  const { log = false, xLabel = "", yLabel = "", marks = false, range = null, cross = false, smooth = false, level = null, labels = false, xRange = null, cloud = [], read = short } = options;
  const lines = given.map(known).filter((line) => line.x.length);
  const panel = element("div", { class: "panel" }, element("h3", {}, title));
  const xs = lines.flatMap((line) => line.x);
  if (!xs.length) return panel;
  const { width, height, left, bottom, top, right } = AREA;
  const scale = log ? Math.log : (value) => value;
  let [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  if (marks) [x0, x1] = xRange ?? rangeOf(lines.map((line) => ({ y: line.x })));
  const [y0, y1] = range ?? rangeOf(lines);
  const px = (x) => left + ((scale(x) - scale(x0)) / (scale(x1) - scale(x0) || 1)) * (width - left - right);
  const py = (y) => height - bottom - ((Math.max(y, y0) - y0) / (y1 - y0)) * (height - bottom - top);
  const svg = shape("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": title });
  const marked = log ? logTicks(x0, x1) : x0 < x1 ? ticks(x0, x1, 5) : [x0];
  const counts = xs.every(Number.isInteger); // half an iteration means nothing
  axes(svg, { px, py, x: counts ? marked.filter(Number.isInteger) : marked, y: ticks(y0, y1, 5), xLabel, yLabel });
  if (level !== null) {
    svg.append(shape("line", { x1: left, x2: width - right, y1: py(level.y), y2: py(level.y), stroke: "var(--soft)", "stroke-dasharray": "2 4" }));
    svg.append(shape("text", { x: width - right, y: py(level.y) + 12, "text-anchor": "end" }, level.name));
  }
  for (const { run, x, y } of cloud) {
    const group = shape("g", { "data-run": run, class: "cloud" });
    x.forEach((each, i) => each >= x0 && y[i] >= y0 && group.append(shape("circle", { cx: px(each).toFixed(1), cy: py(y[i]).toFixed(1), r: 2, fill: colour(run), opacity: 0.25 })));
    svg.append(group);
  }
  for (const line of lines) svg.append(drawn(line, { px, py, marks, smooth: smooth && line.x.length >= SMOOTH_FROM }));
  if (cross) markCrossings(svg, lines, { px, py, scale, least: 0.02 * (y1 - y0), xLabel });
  if (labels) nameLines(svg, lines, { px, py });
  panel.append(svg);
  addReadout(panel, svg, lines, { px, py, scale, xLabel, yLabel: yLabel || title, points: marks, read });
  return panel;
}
function axes(svg, { px, py, x, y, xLabel, yLabel }) {
  const { width, height, left, bottom, right } = AREA;
  for (const value of y) {
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: py(value), y2: py(value) }));
    svg.append(shape("text", { x: left - 5, y: py(value) + 4, "text-anchor": "end" }, tickText(value, 1e3)));
  }
  for (const value of x) svg.append(shape("text", { x: px(value), y: height - bottom + 14, "text-anchor": "middle" }, tickText(value)));
  svg.append(shape("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, xLabel));
  if (yLabel) svg.append(shape("text", { x: 12, y: height / 2, transform: `rotate(-90 12 ${height / 2})`, "text-anchor": "middle" }, yLabel));
}
// The number of a mark; of thousands and more, in short.
function tickText(value, shortened = 1e4) {
  const size = Math.abs(value);
  const text = size < shortened ? `${+value.toFixed(6)}` : size < 1e15 ? value.toLocaleString("en", { notation: "compact" }) : value.toExponential(1);
  return text.replace("-", "−");
}
// One line with its band and its points.
function drawn(line, { px, py, marks, smooth }) {
  const group = shape("g", { "data-run": line.run });
  const at = (x, y) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`;
  // The corner between two points: a value holds until the next one ("after"), or the next one holds from here ("before").
  const corner = (ys, i) => (i && line.steps ? [line.steps === "after" ? at(line.x[i], ys[i - 1]) : at(line.x[i - 1], ys[i])] : []);
  const path = (ys) => line.x.flatMap((x, i) => [...corner(ys, i), at(x, ys[i])]);
  const stroke = { fill: "none", stroke: colour(line.run), "stroke-width": 2, "stroke-dasharray": dashes(line.run) };
  if (bands && line.low && line.low[0] !== null)
    group.append(shape("polygon", { points: [...path(line.high), ...path(line.low).reverse()].join(" "), fill: colour(line.run), opacity: 0.15 }));
  const raw = shape("polyline", { ...stroke, points: path(line.y).join(" ") });
  group.append(raw);
  if (smooth) {
    raw.setAttribute("opacity", 0.25);
    raw.setAttribute("stroke-width", 1);
    line.smooth = smoothed(line.y, Math.max(3, Math.round(line.x.length / 8)));
    group.append(shape("polyline", { ...stroke, class: "smooth", points: path(line.smooth).join(" ") }));
  }
  const dots = marks || line.x.length < 2;
  line.x.forEach((x, i) => {
    const dot = shape("circle", { cx: px(x).toFixed(1), cy: py(line.y[i]).toFixed(1), r: 3, fill: dots ? colour(line.run) : "none" });
    Object.assign(dot.dataset, { x, y: line.y[i], low: line.low?.[i] ?? "", high: line.high?.[i] ?? "" });
    group.append(dot);
  });
  return group;
}
// Rings where curves cross: of every pair of up to four runs, else of those with the run that is best on average.
function markCrossings(svg, lines, { px, py, scale, least, xLabel }) {
  const mean = (line) => line.y.reduce((sum, y) => sum + y, 0) / line.y.length;
  const leader = lines.reduce((best, line) => (mean(line) > mean(best) ? line : best));
  lines.forEach((one, index) => {
    for (const other of lines.slice(index + 1)) {
      if (!bands && one !== leader && other !== leader) continue;
      for (const { at, share, y } of crossings(one, other, scale, least)) {
        const x = px(at[0]) + share * (px(at[1]) - px(at[0]));
        const ring = shape("path", { class: "crossing", d: `M ${x - 4.5} ${py(y)} a 4.5 4.5 0 1 0 9 0 a 4.5 4.5 0 1 0 -9 0` });
        const names = `${data.runs[one.run].name} and ${data.runs[other.run].name}`;
        ring.append(shape("title", {}, `${names} cross between ${short(at[0])} and ${short(at[1])} ${xLabel}`));
        Object.assign(ring.dataset, { a: one.run, b: other.run });
        svg.append(ring);
      }
    }
  });
}
// The names of runs beside their lines, each at another part of its line, moved down where they would overlap.
function nameLines(svg, lines, { px, py }) {
  const taken = [];
  lines.forEach((line, index) => {
    const at = Math.floor((line.x.length * (index + 1)) / (lines.length + 1)), right = px(line.x[at]) > AREA.width * 0.6;
    let y = py(line.y[at]) - 6;
    while (taken.some((each) => Math.abs(each - y) < 12)) y += 12;
    taken.push(y);
    const text = shape("text", { x: px(line.x[at]) + (right ? -7 : 7), y, "text-anchor": right ? "end" : "start", "data-run": line.run, class: "name" }, data.runs[line.run].name);
    text.style.fill = colour(line.run);
    svg.append(text);
  });
}

// Numbers under the pointer, or at the point that the arrow keys choose.
function addReadout(panel, svg, lines, { px, py, scale, xLabel, yLabel, points, read }) {
  const box = element("div", { class: "readout", role: "status" });
  const guide = shape("line", { class: "guide", y1: AREA.top, y2: AREA.height - AREA.bottom });
  svg.append(guide);
  panel.append(box);
  const stops = points
    ? lines.flatMap((line) => line.x.map((x, i) => ({ x, y: line.y[i], line }))) // of a front: each point on its own
    : [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b).map((x) => ({ x }));
  const visible = () => stops.filter((stop) => !stop.line || !hidden.has(stop.line.run));
  let chosen = null;

  function show(stop) {
    chosen = stop;
    const x = px(stop.x);
    for (const end of ["x1", "x2"]) guide.setAttribute(end, x);
    guide.style.visibility = "visible";
    box.replaceChildren(...(stop.line ? pointRows(stop) : lineRows(stop.x)));
    // Beside the guide, and in the half of the plot that has fewer of the values.
    const heights = stop.line ? [py(stop.y)] : lines.map((line) => valueAt(line, stop.x, scale)).filter(Boolean).map((value) => py(value.y));
    const high = heights.reduce((sum, each) => sum + each, 0) / heights.length < AREA.height / 2;
    Object.assign(box.style, x > AREA.width / 2 ? { left: "52px", right: "auto" } : { left: "auto", right: "12px" });
    Object.assign(box.style, high ? { top: "auto", bottom: "44px" } : { top: "36px", bottom: "auto" });
  }
  function clear() {
    chosen = null;
    box.replaceChildren();
    guide.style.visibility = "hidden";
  }
  function row(run, text, low, high) {
    const band = low === null || low === undefined ? "" : ` [${read(low)}, ${read(high)}]`;
    return element("div", {}, element("i", { style: `background:${colour(run)}` }), `${data.runs[run].name} ${text}`, element("small", {}, band));
  }
  function lineRows(x) {
    const values = lines.filter((line) => !hidden.has(line.run)).map((line) => ({ run: line.run, ...valueAt(line, x, scale) }));
    const there = values.filter((each) => each.y !== undefined).sort((a, b) => b.y - a.y);
    return [element("b", {}, `${short(x)} ${xLabel}`), ...there.map((each) => row(each.run, read(each.y), each.low, each.high))];
  }
  const pointRows = ({ x, y, line }) => [row(line.run, ""), element("div", {}, `${xLabel} ${short(x)}`), element("div", {}, `${yLabel} ${short(y)}`)];

  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    const [x, y] = [((event.clientX - frame.left) * AREA.width) / frame.width, ((event.clientY - frame.top) * AREA.height) / frame.height];
    const distance = (stop) => Math.hypot(px(stop.x) - x, stop.line ? py(stop.y) - y : 0);
    const nearest = visible().reduce((best, stop) => (best && distance(best) <= distance(stop) ? best : stop), null);
    if (nearest) show(nearest);
  });
  svg.addEventListener("pointerleave", clear);
  svg.addEventListener("blur", clear);
  svg.addEventListener("keydown", (event) => {
    const all = visible(), at = all.indexOf(chosen);
    const next = { ArrowRight: at + 1, ArrowLeft: at < 0 ? all.length - 1 : at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape") clear();
    if (next === undefined || !all.length) return;
    event.preventDefault();
    show(all[Math.max(0, Math.min(all.length - 1, next))]);
  });
}

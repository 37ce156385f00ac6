// The front of two objectives, and what the positions of a set specialise in.
function showFront() {
  const section = document.getElementById("front");
  if (data.objectives.length < 2) return section.remove();
  const pairs = choice("objectives", data.fronts.map(({ objectives: [x, y] }) => `${x} and ${y}`));
  const draw = () => {
    const front = data.fronts[+pairs.value];
    const lines = front.runs.map((points, run) => ({ run, x: points.map((p) => p[0]), y: points.map((p) => p[1]) }));
    const [x, y] = front.objectives;
    const shown = plot(`${x} against ${y}`, lines, { xLabel: x, yLabel: y, marks: true, labels: true });
    section.querySelector(".panels").replaceChildren(shown, frontTable(front));
    hide();
  };
  pairs.value = data.first_front;
  pairs.addEventListener("change", draw);
  section.querySelector(".controls").append(element("label", {}, "objectives ", pairs));
  draw();
}
// The ends and the middle of each front as numbers, and whether there is a trade-off at all.
function frontTable(front) {
  const [x, y] = front.objectives;
  const pair = (point) => point.map((each) => each.toFixed(2)).join(" / ");
  const rows = front.runs.map((points, run) => [
    { run },
    pair(points[points.length - 1]),
    pair(points[Math.floor(points.length / 2)]),
    pair(points[0]),
  ]);
  const panel = element("div", { class: "panel" }, element("h3", {}, `${x} / ${y} of the answers that are chosen`));
  panel.append(table(["run", `for ${x}`, "for both alike", `for ${y}`], rows, { sorts: false }));
  const span = (at) => Math.max(...front.runs.map((points) => Math.max(...points.map((p) => p[at])) - Math.min(...points.map((p) => p[at]))));
  const none = Math.min(span(0), span(1)) < 0.005;
  panel.append(element("p", {}, none ? `No trade-off here: the answers that are best on ${x} are best on ${y}, too.` : `What a row gains on ${x} from right to left it gives up on ${y}.`));
  if (none && !data.trade_off && data.fronts.length > 1) panel.append(element("p", {}, "No other pair of objectives of these pools has one either."));
  return panel;
}
function showPositions() {
  const section = document.getElementById("positions");
  const sets = data.runs.map((run, index) => [run, index]).filter(([run]) => run.positions.length > 1);
  if (!sets.length) return section.remove();
  for (const [run, index] of sets) {
    const rows = data.objectives.map((name, at) => [name, ...run.positions.map((each) => each.mean[at])]);
    rows.push(["best of its set", ...run.positions.map((each) => each.wins)]);
    const panel = element("div", { class: "panel", "data-run": index }, element("h3", {}, run.name));
    panel.append(table(["", ...run.positions.map((_, at) => `answer ${at + 1}`)], rows, { sorts: false }));
    section.querySelector(".panels").append(panel);
  }
}

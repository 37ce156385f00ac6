// Searches: how the best moved, what was solved within which budget, and what was spent.
const asLine = (curve, run) => ({ run, x: curve.budgets, y: curve.mean, low: curve.low, high: curve.high });

function showSearch() {
  for (const [id, show] of [["moved", showMoved], ["search", showSolved], ["descent", showDescent], ["nondominated", showNondominated], ["spent", showSpent]]) {
    const section = document.getElementById(id);
    data.search ? show(section) : section.remove();
  }
}
function showMoved(section) {
  const charts = data.search.best.map(({ unit, runs }) => [unit, runs.map((curve, run) => ({ ...asLine(curve, run), steps: "after" })).filter((line) => line.x.length)]);
  const every = charts.flatMap(([, lines]) => lines);
  if (!every.length) return section.remove();
  const [low, high] = rangeOf(every);
  // The first values of a search may be far below all later ones.
  const last = (line) => line.x[line.x.length - 1];
  const over = every.flatMap((line) => Array.from({ length: 21 }, (_, at) => valueAt(line, line.x[0] + (at / 20) * (last(line) - line.x[0]), Number).y));
  const floor = floorOf([...over, ...every.map((line) => line.y[0])]);
  const clipped = floor > Math.min(...every.flatMap((line) => line.y));
  const range = [clipped ? floor : low, high];
  for (const [unit, lines] of charts)
    section.querySelector(".panels").append(plot(`best by ${unit}`, lines, { xLabel: unit, yLabel: "best value", range, read: precise }));
  if (clipped) section.querySelector("p").append(" Values below the plot lie on its lower edge.");
}
function showSolved(section) {
  const { curves } = data.search;
  if (!curves.some(({ runs }) => runs.some((curve) => curve.mean.some((share) => share > 0)))) return section.remove();
  const range = rangeOf(curves.flatMap(({ runs }) => runs.map(asLine)));
  for (const { unit, runs } of curves)
    section.querySelector(".panels").append(plot(`by ${unit}`, runs.map(asLine), { log: true, xLabel: unit, yLabel: "solved", range, cross: true }));
}
function showSpent(section) {
  for (const { unit, runs } of data.search.spent)
    section.querySelector(".panels").append(plot(`${unit} spent`, runs.map(asLine), { xLabel: "iterations", yLabel: unit }));
}

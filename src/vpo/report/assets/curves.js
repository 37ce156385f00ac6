// best@k, pass@k and training.
const BUDGETS = ["answers", "generations", "tokens"];

function showBest() {
  showBudgets("best", (run) => run.curves, "best@k", data.oracle == null ? null : { y: data.oracle, name: "oracle" });
}
function showPass() {
  const curves = (run) => run.passes ?? [];
  if (!data.runs.some((run) => curves(run).some((curve) => curve.mean.some((each) => each > 0)))) return document.getElementById("pass").remove();
  showBudgets("pass", curves, "pass@k", null);
}
// A panel for each kind of budget, all with one range, so that heights compare.
function showBudgets(id, curvesOf, label, level) {
  const section = document.getElementById(id);
  const lines = BUDGETS.map((by) =>
    data.runs.flatMap((run, index) => {
      const curve = curvesOf(run).find((each) => each.by === by);
      return curve ? [{ run: index, x: curve.budgets, y: curve.mean, low: curve.low, high: curve.high }] : [];
    }),
  );
  if (!lines.flat().length) return section.remove();
  const range = rangeOf([...lines.flat(), ...(level ? [{ y: [level.y] }] : [])]);
  BUDGETS.forEach((by, index) => {
    if (!lines[index].length) return;
    const title = id === "best" ? `by ${by}` : `${label} by ${by}`;
    section.querySelector(".panels").append(plot(title, lines[index], { log: true, xLabel: by, yLabel: label, range, level, cross: true }));
  });
}
function showTraining() {
  const section = document.getElementById("training");
  const names = [...new Set(data.runs.flatMap((run) => Object.keys(run.training)))].filter((name) => name !== "step");
  if (!names.length) return section.remove();
  for (const name of names) {
    const lines = data.runs.flatMap((run, index) => (run.training[name] ? [{ run: index, x: run.training.step, y: run.training[name] }] : []));
    section.querySelector(".panels").append(plot(name, lines, { xLabel: "steps", smooth: true }));
  }
}

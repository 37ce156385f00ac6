// The non-dominated candidates of a case after each iteration, on two objectives that the reader chooses.
const PLAYED = 6000; // milliseconds from the first iteration to the last

function showNondominated(section) {
  if (!cases.length || cases.every((_, at) => objectivesOf(at).length < 2)) return section.remove();
  const [x, y] = [element("select", { "aria-label": "objective across" }), element("select", { "aria-label": "objective upwards" })];
  const slider = element("input", { type: "range", min: 0, "aria-label": "iteration" }), now = element("output");
  const play = element("button", { type: "button" }, "▶ play");
  let timer = null;
  const draw = () => {
    now.textContent = +slider.value ? `iteration ${slider.value}` : "the start";
    const enough = x.options.length > 1;
    section.querySelector(".panels").replaceChildren(...(enough ? frontPanels(+x.value, +y.value, +slider.value) : [element("p", {}, "This problem has one objective.")]));
    hide();
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ play";
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (slider.value === slider.max) slider.value = slider.min;
    play.textContent = "❚❚ pause";
    timer = setInterval(() => {
      slider.value = +slider.value + 1;
      draw();
      if (slider.value === slider.max) stop();
    }, Math.max(80, PLAYED / (slider.max - slider.min || 1)));
    draw();
  });
  slider.addEventListener("input", draw);
  for (const each of [x, y]) each.addEventListener("change", draw);
  const another = () => {
    stop();
    const names = objectivesOf(chosen.at), [first, second] = widest(names.length);
    const options = () => names.map((name, at) => element("option", { value: at }, name));
    for (const [select, at] of [[x, first], [y, second]]) {
      select.replaceChildren(...options());
      select.value = at;
    }
    const steps = everyMember().map(step);
    [slider.min, slider.max] = [Math.min(...steps), Math.max(...steps)];
    slider.value = slider.max;
    draw();
  };
  section.querySelector(".controls").append(caseChoice(), element("label", {}, "across ", x), element("label", {}, "upwards ", y), element("label", {}, slider, now), play);
  watchers.push(another);
  another();
}
const everyMember = () => families(chosen.at).flatMap((each) => (each ? [...each.members.values()] : []));
// The members of a list of scores that no other one dominates; of equal ones the first.
function nondominated(members, objectives) {
  const front = [];
  for (const member of members) add(front, member, objectives);
  return front;
}
function add(front, member, objectives) {
  const covers = (one, other) => objectives.every((at) => one.scores[at] >= other.scores[at]);
  if (front.some((each) => covers(each, member))) return;
  const kept = front.filter((each) => !covers(member, each));
  front.splice(0, front.length, ...kept, member);
}
const scoredOf = (each) => [...each.members.values()].filter((member) => member.scores);
// The two objectives with the largest front at the end; of many objectives the first two.
function widest(count) {
  let best = [0, Math.min(1, count - 1)], most = 0;
  for (let a = 0; count <= 8 && a < count; a++)
    for (let b = a + 1; b < count; b++) {
      const size = nondominated(everyMember().filter((member) => member.scores), [a, b]).length;
      if (size > most) [best, most] = [[a, b], size];
    }
  return best;
}
function frontPanels(x, y, until) {
  const names = objectivesOf(chosen.at), all = names.map((_, at) => at);
  const range = (at) => {
    const values = everyMember().flatMap((member) => (member.scores ? [member.scores[at]] : []));
    return rangeOf([{ y: [floorOf(values), Math.max(...values)] }]);
  };
  const cloud = [], lines = [], rows = [], counts = [];
  families(chosen.at).forEach((each, run) => {
    if (!each) return;
    const soFar = scoredOf(each).filter((member) => step(member) <= until);
    const front = nondominated(soFar, [x, y]).sort((a, b) => a.scores[x] - b.scores[x]);
    const column = (members, at) => members.map((member) => member.scores[at]);
    cloud.push({ run, x: column(soFar, x), y: column(soFar, y) });
    lines.push({ run, x: column(front, x), y: column(front, y), steps: "before" });
    rows.push([{ run }, front.length, nondominated(soFar, all).length, soFar.length]);
    counts.push({ run, ...archiveSizes(each, all), steps: "after" });
  });
  const title = `${names[x]} against ${names[y]}`;
  const scatter = plot(title, lines, { xLabel: names[x], yLabel: names[y], marks: true, xRange: range(x), range: range(y), cloud });
  const panel = element("div", { class: "panel" }, element("h3", {}, "non-dominated so far"));
  panel.append(table(["search", "in these two", `in all ${names.length}`, "shown"], rows, { sorts: false }));
  const most = Math.max(1, ...counts.flatMap((line) => line.y));
  const sizes = plot("non-dominated in all objectives", counts, { xLabel: "iterations", yLabel: "candidates", range: [0, most * 1.05] });
  return [scatter, panel, sizes];
}
// How many are non-dominated after each iteration.
function archiveSizes(each, objectives) {
  const front = [], sizes = new Map();
  for (const member of scoredOf(each)) {
    add(front, member, objectives);
    sizes.set(step(member), front.length);
  }
  return { x: [...sizes.keys()], y: [...sizes.values()] };
}

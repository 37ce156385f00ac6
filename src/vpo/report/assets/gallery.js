// Some problems with the answers of each run: drawn over a picture, or as text by generation.
const FEW_OBJECTIVES = 6; // more are shown as a strip of cells

function showGallery() {
  const section = document.getElementById("gallery");
  if (!data.gallery.length) return section.remove();
  const pictures = data.gallery.some((scene) => scene.svg);
  section.querySelector("p").textContent = pictures
    ? "The first k answers of each pool to one problem; the best of them is drawn in bold."
    : "The first k answers of each pool to one problem, by generation, with their scores. What differs from the first answer of the generation is marked; the first answers of generations with one answer each are compared with the first of all.";
  if (pictures) section.classList.add("pictures");
  const most = Math.max(...data.gallery.flatMap((scene) => scene.runs.map((sets) => sets.flat().length)));
  const problem = choice("problem", data.gallery.map((scene) => scene.problem));
  const slider = element("input", { type: "range", min: 1, max: most, value: Math.min(pictures ? 5 : 6, most), "aria-label": "k" });
  const count = element("output");
  const draw = () => {
    const scene = data.gallery[+problem.value], k = +slider.value;
    count.textContent = `k = ${k}`;
    section.querySelector(".question").replaceChildren(...questionOf(scene));
    section.querySelector(".panels").replaceChildren(...scene.runs.map((sets, run) => answersPanel(scene, sets, run, k)));
    hide();
  };
  problem.addEventListener("change", draw);
  slider.addEventListener("input", draw);
  section.querySelector(".controls").append(element("label", {}, "problem ", problem), element("label", {}, slider, count));
  draw();
}
function questionOf(scene) {
  const block = (title, text) => element("div", { class: "panel" }, element("h3", {}, title), element("pre", { tabindex: 0 }, text));
  const parts = [];
  if (scene.question && !scene.svg) parts.push(block("question", scene.question));
  if (scene.gold && !scene.svg) parts.push(block("gold answer", scene.gold));
  return parts;
}
// The generations that hold the first k answers, the last of them cut off.
function firstAnswers(sets, k) {
  const shown = [];
  for (const set of sets) {
    if (k <= 0) break;
    shown.push(set.slice(0, k));
    k -= set.length;
  }
  return shown;
}
function answersPanel(scene, sets, run, k) {
  const shown = firstAnswers(sets, k);
  const answers = shown.flat();
  const best = answers.reduce((top, each) => (top === null || each.value > top.value ? each : top), null);
  const panel = element("div", { class: "panel", "data-run": run });
  const score = `best of ${answers.length}`;
  panel.append(element("h3", { style: `color:${colour(run)}` }, data.runs[run].name));
  if (scene.svg) panel.append(picture(scene, answers, best, run), best ? scoreLine(scene, best, score) : "");
  else panel.append(element("p", {}, `${score}: ${best ? short(best.value) : "–"}`), ...textSets(scene, sets, shown, best));
  return panel;
}
function picture(scene, answers, best, run) {
  const holder = element("div", { class: "picture" });
  holder.innerHTML = scene.svg; // made by the task; no text of a model is in it
  const svg = holder.firstElementChild;
  for (const each of answers) {
    const line = shape("polyline", { points: each.path, fill: "none", stroke: colour(run), "stroke-linejoin": "round" });
    line.setAttribute("stroke-width", each === best ? 0.16 : 0.07);
    line.setAttribute("opacity", each === best ? 1 : 0.35);
    svg.append(line);
  }
  return holder;
}
// Answers under the generation that they are in; single ones all together.
function textSets(scene, sets, shown, best) {
  const single = sets.every((set) => set.length === 1);
  const groups = single ? [shown.flat()] : shown;
  return groups.map((group, index) => {
    const title = single ? "generations of one answer each" : `generation ${index + 1}, a set of ${sets[index].length}`;
    const block = element("div", { class: "set" }, element("h4", {}, title));
    const first = group.findIndex((each) => each.text !== null);
    group.forEach((each, at) => block.append(textAnswer(scene, group, at, first, each === best)));
    return block;
  });
}
// The answer at an index of its group, compared with the first one that is not missing.
function textAnswer(scene, group, at, first, best) {
  const answer = group[at], title = (index) => `answer ${index + 1}`;
  const { nodes, note } =
    answer.text === null ? { nodes: ["(missing)"], note: "" } : at === first ? { nodes: [answer.text], note: "" } : compared(answer.text, group[first].text, title(first));
  const score = scoreLine(scene, answer, title(at));
  if (note) score.append(element("span", {}, note));
  return element("div", { class: best ? "answer best" : "answer" }, score, element("pre", { tabindex: 0 }, ...nodes));
}
// The value of an answer, whether it solves the problem, and its score on each objective.
function scoreLine(scene, answer, title) {
  const line = element("div", { class: "score" }, element("b", {}, `${title}: ${short(answer.value)}`));
  if (answer.solved) line.append(element("span", {}, "✓ solved"));
  if (scene.objectives.length <= FEW_OBJECTIVES)
    scene.objectives.forEach((name, at) => line.append(element("span", {}, `${name} ${short(answer.scores[at])}`)));
  else {
    const texts = scene.objectives.map((name, at) => `${name} ${short(answer.scores[at])}`);
    const strip = element("span", { class: "strip", role: "img", title: texts.join(", "), "aria-label": texts.join(", ") });
    for (const score of answer.scores) strip.append(element("i", { style: `--full:${Math.round(100 * Math.max(0, Math.min(1, score)))}%` }));
    line.append(strip, element("span", {}, `${scene.objectives.length} objectives, mean ${short(answer.scores.reduce((sum, each) => sum + each, 0) / answer.scores.length)}`));
  }
  return line;
}

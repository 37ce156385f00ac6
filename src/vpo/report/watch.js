// Shows the state of a run, and asks the server for the next one. All text of the run goes into text nodes.
const POLL = 2000;
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [380, 200, 46, 32, 8, 10];
const byId = (id) => document.getElementById(id);
const panels = new Map(); // title → what is drawn in it
let state = JSON.parse(byId("data").textContent);
let version = "";
let shownRollouts = "";

function duration(seconds) {
  if (seconds < 99.5) return `${seconds < 9.95 ? +seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60), hours = Math.round(seconds / 3600);
  if (minutes < 100) return `${minutes} min`;
  return hours < 48 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function show() {
  const of = state.steps ? ` of ${state.steps}` : "";
  document.title = `${state.step}${state.steps ? `/${state.steps}` : ""} · ${state.name}`;
  byId("subtitle").textContent = state.subtitle;
  byId("status").textContent = state.status;
  byId("status").dataset.status = state.status;
  const resumed = state.resumed ? `Resumed ${state.resumed === 1 ? "once" : `${state.resumed} times`}. ` : "";
  byId("status-text").textContent = resumed + state.status_text;
  byId("progress").hidden = !state.steps;
  byId("progress").value = state.steps ? state.step / state.steps : 0;
  const cards = [["step", state.step + "", of]];
  if (state.seconds_left !== null) cards.push(["time left, about", duration(state.seconds_left), ""]);
  if (state.seconds_per_step !== null) cards.push(["a step", duration(state.seconds_per_step), ""]);
  if (state.tokens_per_second !== null) cards.push(["tokens/s", short(state.tokens_per_second), ""]);
  if (state.best !== null) cards.push([`held-out ${state.best.measure}, best`, short(state.best.value), ` at step ${state.best.step}`]);
  for (const line of state.panels.filter((panel) => !panel.title.startsWith("held-out")).flatMap((panel) => panel.lines))
    if (["reward", "set reward", "read"].includes(line.name)) cards.push([line.name, short(line.y.at(-1)), ""]);
  byId("cards").replaceChildren(...cards.map(([name, value, more]) => {
    const card = element("div", { class: "card" }, element("span", {}, name), element("b", {}, value), element("small", {}, more));
    card.dataset.name = name;
    return card;
  }));
  byId("notes").replaceChildren(...state.notes.map((note) => element("p", {}, `note: ${note}`)));
  byId("command").replaceChildren(...(state.command ? ["trained by ", element("code", {}, state.command)] : []));
  showCurves();
  showRollouts();
  showAge();
}

function showAge() {
  const age = state.written === null ? null : Math.max(0, Date.now() / 1000 - state.written);
  let card = byId("cards").querySelector("[data-name=age]");
  if (age === null || state.status === "finished" || !state.live) return card?.remove();
  if (!card) {
    card = element("div", { class: "card", "data-name": "age" }, element("span", {}, "last step"), element("b"));
    byId("cards").append(card);
  }
  card.lastElementChild.textContent = `${duration(Math.round(age))} ago`;
}

function showCurves() {
  const holder = byId("curves").querySelector(".panels");
  byId("curves").querySelector(".empty").hidden = state.panels.length > 0;
  for (const [title, panel] of panels)
    if (!state.panels.some((each) => each.title === title)) {
      panel.element.remove();
      panels.delete(title);
    }
  for (const { title, lines } of state.panels) {
    if (!panels.has(title)) {
      panels.set(title, newPanel(title));
      holder.append(panels.get(title).element);
    }
    draw(panels.get(title), lines);
  }
}
function newPanel(title) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, tabindex: 0 });
  const readout = element("p", { class: "readout", "aria-live": "off" });
  const panel = { svg, readout, at: null, lines: [], element: element("div", { class: "panel" }, element("h3", {}, title), readout, svg) };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    point(panel, panel.toStep(((event.clientX - box.left) / box.width) * WIDTH));
  });
  svg.addEventListener("pointerleave", () => point(panel, null));
  svg.addEventListener("blur", () => point(panel, null));
  svg.addEventListener("keydown", (event) => {
    const xs = panel.lines[0].x, by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const now = panel.at === null ? xs.length : nearest(xs, panel.at);
    point(panel, xs[Math.min(xs.length - 1, Math.max(0, now + by))]);
  });
  return panel;
}
function nearest(xs, x) {
  let best = 0;
  xs.forEach((each, at) => Math.abs(each - x) < Math.abs(xs[best] - x) && (best = at));
  return best;
}
function point(panel, x) {
  panel.at = x;
  const shown = x === null ? panel.lines.map((line) => line.y.length - 1) : panel.lines.map((line) => nearest(line.x, x));
  const step = panel.lines.length ? panel.lines[0].x[shown[0]] : 0;
  panel.readout.replaceChildren(`step ${Math.round(step)}: `, ...panel.lines.map((line, index) => {
    const dot = element("i");
    dot.style.background = colour(index);
    const name = panel.lines.length > 1 ? `${line.name} ` : "";
    return element("span", {}, ...(panel.lines.length > 1 ? [dot] : []), name + short(line.y[shown[index]]));
  }));
  panel.svg.querySelector(".cursor")?.remove();
  if (x !== null) panel.svg.append(shape("line", { class: "cursor", x1: panel.toX(step), x2: panel.toX(step), y1: TOP, y2: HEIGHT - BOTTOM }));
}
function draw(panel, lines) {
  panel.lines = lines;
  const xs = lines.flatMap((line) => line.x), ys = lines.flatMap((line) => line.y);
  const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => values.reduce((a, b) => Math.max(a, b));
  const [x0, x1] = [least(xs), Math.max(most(xs), least(xs) + 1)];
  let [y0, y1] = [least(ys), most(ys)];
  const margin = y1 - y0 < 1e-9 ? Math.max(Math.abs(y0) * 0.1, 1e-3) : 0.06 * (y1 - y0);
  [y0, y1] = [y0 - margin, y1 + margin];
  panel.toX = (x) => LEFT + ((x - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT);
  panel.toStep = (at) => x0 + ((at - LEFT) / (WIDTH - LEFT - RIGHT)) * (x1 - x0);
  const toY = (y) => HEIGHT - BOTTOM - ((y - y0) / (y1 - y0)) * (HEIGHT - BOTTOM - TOP);
  const parts = [];
  for (const y of ticks(y0, y1, 5)) {
    parts.push(shape("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: toY(y), y2: toY(y) }));
    parts.push(shape("text", { x: LEFT - 5, y: toY(y) + 4, "text-anchor": "end" }, +y.toPrecision(6)));
  }
  for (const x of ticks(x0, x1, 5).filter(Number.isInteger)) parts.push(shape("text", { x: panel.toX(x), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, x));
  parts.push(shape("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, "step"));
  lines.forEach((line, index) => {
    const stroke = colour(index);
    const path = (values) => values.map((y, at) => `${panel.toX(line.x[at]).toFixed(1)},${toY(y).toFixed(1)}`).join(" ");
    if (line.x.length === 1) parts.push(shape("circle", { cx: panel.toX(line.x[0]), cy: toY(line.y[0]), r: 3, fill: stroke }));
    if (line.x.length > 8) parts.push(shape("polyline", { class: "raw", points: path(line.y), stroke }));
    parts.push(shape("polyline", { class: "smooth", points: path(line.x.length > 8 ? smoothed(line.y) : line.y), stroke }));
  });
  panel.svg.dataset.step = lines[0].x.at(-1);
  panel.svg.replaceChildren(...parts);
  point(panel, panel.at);
}
// A mean over both sides, so that it does not lag behind, with weights that fall off over a twentieth of the curve.
function smoothed(values) {
  const span = Math.max(2, values.length / 20);
  return values.map((_, at) => {
    let total = 0, weight = 0;
    values.forEach((value, other) => {
      const share = Math.exp(-Math.abs(at - other) / span);
      total += share * value;
      weight += share;
    });
    return total / weight;
  });
}

function showRollouts() {
  const rows = state.rollouts, text = JSON.stringify(rows);
  if (text === shownRollouts) return; // what is open or selected stays so
  shownRollouts = text;
  const section = byId("rollouts");
  section.querySelector(".empty").hidden = rows.length > 0;
  const shared = rows.length > 0 && rows.every((row) => JSON.stringify(row.prompt) === JSON.stringify(rows[0].prompt));
  const problem = shared && rows[0].problem !== null ? ` of problem ${rows[0].problem}` : "";
  byId("rollouts-of").textContent = rows.length ? `Step ${rows[0].step}: ${counted(rows.length, "completion")}${problem}. Bold: the best answer on an objective.` : "";
  byId("prompt").replaceChildren(...(shared ? [promptOf(rows[0])] : []));
  section.querySelector(".rollouts").replaceChildren(...rows.map((row, index) => rolloutOf(row, index, shared)));
}
function promptOf(row) {
  const turns = row.prompt.flatMap((turn) => [...(turn.role ? [element("div", { class: "role" }, turn.role)] : []), element("pre", { tabindex: 0 }, turn.content)]);
  return element("div", { class: "prompt" }, element("h3", {}, "prompt"), ...turns);
}
function rolloutOf(row, index, shared) {
  const reward = row.reward === null ? "reward not known" : `reward ${short(row.reward)}`;
  const article = element("article", { class: "rollout", "data-step": row.step }, element("h3", {}, `completion ${index + 1}: ${reward}`));
  if (!shared) article.append(promptOf(row));
  const count = Math.max(0, ...row.vectors.map((vector) => vector.length));
  const scores = Array.from({ length: count }, (_, column) => row.vectors.map((vector) => vector[column] ?? -Infinity));
  const best = scores.map((each) => (Math.max(...each) > Math.min(...each) ? Math.max(...each) : null));
  const names = row.objectives.length === count ? row.objectives : Array.from({ length: count }, (_, column) => `${column + 1}`);
  const head = element("tr", {}, element("th", {}, "answer"), ...names.map((name) => element("th", { class: "score" }, name)));
  const body = row.answers.map((answer, at) => {
    const text = answer === null ? element("span", { class: "missing" }, "missing") : element("pre", { tabindex: 0 }, answer);
    return element("tr", {}, element("td", { class: "answer" }, text), ...names.map((_, column) => scoreOf(row.vectors[at]?.[column] ?? null, best[column])));
  });
  article.append(element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body))));
  article.append(element("details", {}, element("summary", {}, "the whole completion"), element("pre", { tabindex: 0 }, row.completion)));
  return article;
}
function scoreOf(value, best) {
  const cell = element("td", { class: value !== null && value === best ? "score best" : "score" }, value === null ? "–" : value.toFixed(2));
  cell.style.setProperty("--value", Math.min(1, Math.max(0, value ?? 0)));
  return cell;
}

async function poll() {
  try {
    const answer = await fetch(`state.json?have=${version}`, { cache: "no-store" });
    if (answer.status === 200) {
      state = { ...(await answer.json()), live: true };
      version = answer.headers.get("X-Version");
      show();
    } else if (answer.status !== 204) throw new Error(`status ${answer.status}`);
    byId("lost").hidden = true;
  } catch (error) {
    byId("lost").hidden = false;
    byId("lost").textContent = `No answer from vpo watch: this page shows the run as it was. (${error.message})`;
  }
  showAge();
  setTimeout(poll, POLL);
}

show();
if (state.live) setTimeout(poll, POLL);

// The card of the chosen candidate: its scores, the feedback on it, its answer, and what differs from its parents.
let view = "changes"; // or "answer", as the reader chose last

function candidateCard(choose) {
  const { members } = family(), member = members.get(chosen.number);
  const parts = [heading(member), relativesOf(member, choose), scoresOf(member, members.get(member.parent))];
  for (const [title, text] of [["not scored", member.failure], ["feedback", member.feedback]])
    if (text) parts.push(element("h4", {}, title), element("pre", { tabindex: 0 }, text));
  return [element("div", { class: "panel" }, ...parts, ...answerOf(member, members))];
}
function heading(member) {
  const title = element("h3", { "aria-live": "polite" }, `candidate ${titleOf(member)}`);
  const value = element("p", { class: "score" }, element("b", {}, member.value === null ? "not scored" : `value ${precise(member.value)}`), change(member.value, family().members.get(member.parent)?.value));
  if (member.solved) value.append(element("span", {}, "✓ solved"));
  if (member.position > 1) value.append(element("span", {}, `answer ${member.position} of its completion`));
  return element("div", {}, title, value);
}
const CHILDREN = 12; // that have a button

// Buttons that lead to relatives and neighbours.
function relativesOf(member, choose) {
  const { members, end } = family();
  const button = (text, other, label) => {
    const made = element("button", { type: "button", "aria-label": label ?? text }, text);
    other ? made.addEventListener("click", () => choose(other.number)) : (made.disabled = true);
    return made;
  };
  const row = element("div", { class: "buttons" }, button("‹", neighbour("ArrowLeft"), "previous candidate"), button("›", neighbour("ArrowRight"), "next candidate"));
  row.append(button(members.get(end).solved ? "solution" : "best", members.get(end)));
  for (const [name, number] of [["parent", member.parent], ["second parent", member.second]]) if (number !== null) row.append(button(`${name} ${number}`, members.get(number)));
  const born = member.children.slice(0, CHILDREN);
  const more = member.children.length - born.length;
  if (born.length) row.append(element("span", {}, born.length > 1 ? "children" : "child"), ...born.map((each) => button(`${each.number}`, each, `child ${each.number}`)), more ? `and ${more} more` : "");
  return row;
}
// The score on each objective, beside the parent's.
function scoresOf(member, parent) {
  if (!member.scores) return "";
  const names = objectivesOf(chosen.at), before = parent?.scores;
  const rows = names.map((name, at) => [name, precise(member.scores[at]), ...(before ? [precise(before[at]), change(member.scores[at], before[at])] : [])]);
  const shown = table(["objective", "score", ...(before ? [`parent ${parent.number}`, "change"] : [])], rows, { sorts: false });
  if (names.length <= FEW_OBJECTIVES) return shown;
  return element("details", {}, element("summary", {}, `${names.length} objectives, mean ${precise(member.scores.reduce((sum, each) => sum + each, 0) / names.length)}`), shown);
}
// The picture of an answer; or its text, or its changes from a parent, as the reader chooses.
function answerOf(member, members) {
  const elders = parents(member, members).filter((each) => each.answer !== null);
  if (member.answer === null) return [element("p", {}, "The completion has no such answer.")];
  if (cases[chosen.at].svg) {
    const note = elders.length ? element("p", {}, `dashed: ${elders.map((each) => `parent ${each.number}`).join(", ")}`) : "";
    return [pictureOf(member, ...elders), note, ...(elders.length ? changesFrom(member, elders[0]) : [textBlock(member.answer)])];
  }
  const views = new Map([...elders.map((each, at) => [at ? "second" : "changes", [`changes from ${each.number}`, () => changesFrom(member, each)]]), ["answer", ["whole answer", () => [textBlock(member.answer)]]]]);
  const body = element("div"), buttons = element("div", { class: "buttons", role: "group", "aria-label": "what is shown of the answer" });
  const show = (name) => {
    body.replaceChildren(...views.get(name)[1]());
    for (const each of buttons.children) each.setAttribute("aria-pressed", each.dataset.view === name);
  };
  for (const [name, [title]] of views) {
    const button = element("button", { type: "button", "data-view": name }, title);
    button.addEventListener("click", () => show((view = name)));
    buttons.append(button);
  }
  show(views.has(view) ? view : views.has("changes") ? "changes" : "answer");
  return [buttons, body];
}
const textBlock = (text) => element("pre", { tabindex: 0 }, text);
// What differs from another candidate: by lines, or in answers of one line by words.
function changesFrom(member, other) {
  if (!`${member.answer}${other.answer}`.includes("\n")) {
    const { nodes, note } = compared(member.answer, other.answer, `candidate ${other.number}`);
    return [element("pre", { tabindex: 0 }, ...nodes), note ? element("p", {}, note) : ""];
  }
  const { block, note } = diffBlock(member.answer, other.answer);
  return [element("p", {}, note), block];
}

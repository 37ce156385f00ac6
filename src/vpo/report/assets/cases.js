// The cases of searches, each a problem with a goal: their candidates, and which of them is shown.
const cases = data.search?.families.cases ?? [];
const chosen = { at: 0, run: 0, number: null };
const watchers = []; // called when another case is chosen
const family = () => families(chosen.at)[chosen.run];
const step = (member) => member.iteration + 1; // 0 for what a search started from
const when = (member) => (member.iteration < 0 ? "the start" : `iteration ${step(member)}`);
const unpacked = new Map();

// The families of a case, by run; null where a search has none.
function families(at) {
  if (!unpacked.has(at)) unpacked.set(at, cases[at].runs.map((each) => each && unpack(each)));
  return unpacked.get(at);
}
// Candidates as objects with their texts, by number.
function unpack({ members: columns, lines, texts, paths, end, line, left_out: leftOut }) {
  const text = (index) => (index === null ? null : texts[index].map((at) => lines[at]).join("\n"));
  const members = new Map();
  columns.number.forEach((number, at) => {
    const member = { path: paths?.[columns.answer[at]] ?? "", children: [] };
    for (const [name, column] of Object.entries(columns)) member[name] = column[at];
    for (const name of ["answer", "failure", "feedback"]) member[name] = text(member[name]);
    members.set(number, member);
  });
  for (const member of members.values()) for (const parent of parents(member, members)) parent.children.push(member);
  return { members, end, line, total: members.size + leftOut };
}
// The parents of a candidate that the page has.
function parents(member, members) {
  return [member.parent, member.second].filter((number) => number !== null && members.has(number)).map((number) => members.get(number));
}
// A candidate's ancestors, or with its children for `next` its descendants, and itself.
function relatives(member, next) {
  const found = new Set([member]), waiting = [member];
  while (waiting.length) for (const each of next(waiting.pop())) if (!found.has(each)) waiting.push(each) && found.add(each);
  return found;
}
// A candidate after its parent, the parent's parent and so on, the eldest first.
function lineOf(member, members) {
  const line = [];
  for (let each = member; each && !line.includes(each); each = members.get(each.parent)) line.unshift(each);
  return line;
}
// Names of the scores of a case; those of a task that is no longer there are numbered.
function objectivesOf(at) {
  const scores = families(at).flatMap((each) => (each ? [...each.members.values()] : [])).find((member) => member.scores)?.scores ?? [];
  return scores.map((_, index) => (cases[at].objectives.length === scores.length ? cases[at].objectives[index] : `score ${index + 1}`));
}
// Shows another case; of the same search as before if that has it, at the end of its longest line.
function chooseCase(at) {
  const some = families(at);
  chosen.at = at;
  if (!some[chosen.run]) chosen.run = some.findIndex(Boolean);
  chosen.number = some[chosen.run].end;
  for (const draw of watchers) draw();
}
function caseChoice() {
  const solved = ({ runs }) => runs.some((each) => each?.members.solved.includes(true));
  const select = choice("problem", cases.map((each) => `${each.case}${solved(each) ? " ✓" : ""}`));
  select.addEventListener("change", () => chooseCase(+select.value));
  watchers.push(() => (select.value = chosen.at));
  return element("label", {}, "problem ", select);
}

// What differs between two texts, by words and signs.
const WORDS = 4000; // longer texts are compared by lines
const FOREIGN = 0.7; // a share of changed words from which marking them says nothing

function pieces(text, whole) {
  return whole ? text.split(/(?<=\n)/) : (text.match(/\n|[^\S\n]+|[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? []);
}
// For each piece of `text` its index in `other`, in a longest common subsequence of both; -1 for those outside of it.
function matches(text, other) {
  let start = 0, end = 0;
  const least = Math.min(text.length, other.length);
  while (start < least && text[start] === other[start]) start++;
  while (end < least - start && text[text.length - 1 - end] === other[other.length - 1 - end]) end++;
  const a = text.slice(start, text.length - end), b = other.slice(start, other.length - end);
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const found = text.map((_, at) => (at < start ? at : at >= text.length - end ? at + other.length - text.length : -1));
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) found[start + i++] = start + j++;
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return found;
}
// A text with what is not in `other`, which has a name, marked, and a word on how they differ.
function compared(text, other, name) {
  if (text === other) return { nodes: [text], note: `the same as ${name}` };
  const whole = Math.max(text.length, other.length) > WORDS;
  const [mine, theirs] = [pieces(text, whole), pieces(other, whole)];
  const shared = matches(mine, theirs).map((at) => at >= 0);
  const letters = (keep) => mine.filter((each, at) => each.trim() && keep(at)).join("").length;
  if (letters((at) => !shared[at]) > FOREIGN * letters(() => true)) return { nodes: [text], note: `differs nearly everywhere from ${name}` };
  const kept = shared.filter((each, at) => each && mine[at].trim()).length;
  const left = theirs.filter((each) => each.trim()).length - kept;
  const nodes = [];
  for (let at = 0; at < mine.length; ) {
    let end = at + 1;
    while (end < mine.length && shared[end] === shared[at]) end++;
    const part = mine.slice(at, end).join("");
    nodes.push(shared[at] || !part.trim() ? part : element("mark", {}, part));
    at = end;
  }
  if (nodes.every((each) => typeof each === "string") && !left) return { nodes, note: `the same as ${name} but for spaces` };
  return { nodes, note: left > 0 ? `without ${counted(left, whole ? "line" : "word")} of ${name}` : "" };
}
// The lines of a text and those that it lacks of another, in order: pairs of "=", "-" or "+" and a line.
function lineDiff(text, other) {
  const mine = text.split("\n"), theirs = other.split("\n"), rows = [];
  const found = matches(mine, theirs);
  let next = 0; // of the other's lines
  mine.forEach((line, at) => {
    if (found[at] < 0) return rows.push(["+", line]);
    while (next < found[at]) rows.push(["-", theirs[next++]]);
    next++;
    rows.push(["=", line]);
  });
  while (next < theirs.length) rows.push(["-", theirs[next++]]);
  return inOrder(rows);
}
// Within a run of changed lines, those that are gone stand first.
function inOrder(rows) {
  const sorted = [];
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && rows[end][0] !== "=") end++;
    const run = rows.slice(at, end);
    sorted.push(...run.filter(([sign]) => sign === "-"), ...run.filter(([sign]) => sign === "+"));
    if (end < rows.length) sorted.push(rows[end]);
    at = end + 1;
  }
  return sorted;
}
// The lines of a diff as elements; of as many lines that replace as many others, the words that differ are marked.
function diffLines(rows) {
  const marked = rows.map(([, line]) => [line]);
  for (let at = 0; at < rows.length; ) {
    let [gone, end] = [at, at];
    while (rows[gone]?.[0] === "-") gone++;
    for (end = gone; rows[end]?.[0] === "+"; ) end++;
    if (gone > at && gone - at === end - gone)
      for (let one = at; one < gone; one++) {
        const [before, after] = [rows[one][1], rows[one + gone - at][1]];
        marked[one] = compared(before, after, "").nodes;
        marked[one + gone - at] = compared(after, before, "").nodes;
      }
    at = Math.max(end, at + 1);
  }
  return rows.map(([sign], at) => element("div", { class: { "+": "added", "-": "removed" }[sign] ?? "" }, `${sign === "=" ? " " : sign} `, ...marked[at]));
}
const CONTEXT = 3; // lines that are shown around a change

// A text beside another as lines in two colours; what is the same in both is folded.
function diffBlock(text, other) {
  const rows = lineDiff(text, other);
  const block = element("div", { class: "diff", tabindex: 0 });
  const near = rows.map((_, at) => rows.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(([sign]) => sign !== "="));
  const lines = diffLines(rows);
  for (let at = 0; at < rows.length; ) {
    let end = at + 1;
    while (end < rows.length && near[end] === near[at]) end++;
    const some = lines.slice(at, end);
    block.append(...(near[at] || some.length < 3 ? some : [element("details", {}, element("summary", {}, counted(some.length, "unchanged line")), ...some)]));
    at = end;
  }
  const count = (wanted) => rows.filter(([sign]) => sign === wanted).length;
  return { block, note: count("+") + count("-") ? `+${count("+")} −${count("-")} lines` : "the same text" };
}

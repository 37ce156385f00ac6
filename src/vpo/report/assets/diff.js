// What differs between two texts, by words and signs.
const WORDS = 4000; // longer texts are compared by lines
const FOREIGN = 0.7; // a share of changed words from which marking them says nothing

function pieces(text, whole) {
  return whole ? text.split(/(?<=\n)/) : (text.match(/\n|[^\S\n]+|[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? []);
}
// Which pieces of `text` are in a longest common subsequence with `other`.
function common(text, other) {
  let start = 0, end = 0;
  const least = Math.min(text.length, other.length);
  while (start < least && text[start] === other[start]) start++;
  while (end < least - start && text[text.length - 1 - end] === other[other.length - 1 - end]) end++;
  const a = text.slice(start, text.length - end), b = other.slice(start, other.length - end);
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const shared = text.map((_, at) => at < start || at >= text.length - end);
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      shared[start + i++] = true;
      j++;
    } else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return shared;
}
// A text with what is not in `other`, which has a name, marked, and a word on how they differ.
function compared(text, other, name) {
  if (text === other) return { nodes: [text], note: `the same as ${name}` };
  const whole = Math.max(text.length, other.length) > WORDS;
  const [mine, theirs] = [pieces(text, whole), pieces(other, whole)];
  const shared = common(mine, theirs);
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

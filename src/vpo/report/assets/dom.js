// What every page draws with.
const COLOURS = 10; // of palette.css
const colour = (index) => `var(--run-${index % COLOURS})`;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function shape(tag, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
// A number with three digits; whole numbers and those from 100 on without a fraction.
function short(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return value.toPrecision(3).replace("-", "−");
}
// A number with six digits at most, to tell values apart that differ by little.
function precise(value) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value) < 1e9 ? (+value.toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 }) : value.toExponential(3);
  return text.replace("-", "−");
}
const choice = (label, names) => {
  const made = element("select", { "aria-label": label });
  names.forEach((name, index) => made.append(element("option", { value: index }, name)));
  return made;
};
// Such as "1 answer" or "1,200 answers".
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

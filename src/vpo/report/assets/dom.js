// The data of the page, and what every part of it draws with.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = 10; // of palette.css
const colour = (run) => `var(--run-${run % COLOURS})`;
const dashes = (run) => ["none", "6 3", "2 3"][Math.floor(run / COLOURS) % 3];
const bands = data.runs.length <= 4; // more would hide each other; the tables have all intervals
const hidden = new Set(); // runs that the legend hides

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
const choice = (label, names) => {
  const made = element("select", { "aria-label": label });
  names.forEach((name, index) => made.append(element("option", { value: index }, name)));
  return made;
};
function hide() {
  for (const each of document.querySelectorAll("[data-run]")) each.style.display = hidden.has(+each.dataset.run) ? "none" : "";
}

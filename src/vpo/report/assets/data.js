// The data of the page, and which of its runs are shown.
const data = JSON.parse(document.getElementById("data").textContent);
const dashes = (run) => ["none", "6 3", "2 3"][Math.floor(run / COLOURS) % 3];
const bands = data.runs.length <= 4; // more would hide each other; the tables have all intervals
const hidden = new Set(); // runs that the legend hides
function hide() {
  for (const each of document.querySelectorAll("[data-run]")) each.style.display = hidden.has(+each.dataset.run) ? "none" : "";
}

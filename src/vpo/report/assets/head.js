// The head of the page, the contents, the legend, the cards of cost, and the foot.
function showHead() {
  const verdict = document.getElementById("verdict");
  data.verdict ? (verdict.textContent = data.verdict) : verdict.remove();
  for (const [name, value] of data.facts ?? [])
    document.getElementById("facts").append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  if (data.summary) document.getElementById("facts").append(data.summary);
  for (const note of data.notes) document.getElementById("notes").append(element("li", {}, note));
}
function showLegend() {
  const legend = document.getElementById("legend");
  data.runs.forEach((run, index) => {
    const box = element("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => {
      box.checked ? hidden.delete(index) : hidden.add(index);
      hide();
    });
    const line = element("i", { style: `border-color:${colour(index)};border-top-style:${dashes(index) === "none" ? "solid" : "dashed"}` });
    legend.append(element("label", {}, box, line, run.name + (run.untrained ? " (untrained)" : "")));
  });
}
// Links to the sections that are left, and a link beside each title to itself.
function showContents() {
  const contents = document.getElementById("contents");
  for (const section of document.querySelectorAll("main > section, #commands")) {
    const title = section.querySelector("h2"), name = title.textContent, link = `#${section.id}`;
    contents.append(element("a", { href: link }, name));
    title.append(element("a", { class: "anchor", href: link, "aria-label": `link to ${name}` }, "#"));
  }
}
function showCost() {
  const section = document.getElementById("cost");
  if (!(data.cards ?? []).length) return section.remove();
  for (const { run, title, detail, items } of data.cards) {
    const list = element("dl");
    for (const [name, value] of items) list.append(element("dt", {}, name), element("dd", {}, value));
    const card = element("div", { class: "card", "data-run": run, style: `border-top-color:${colour(run)}` });
    card.append(data.runs[run].name, element("strong", {}, title), element("small", {}, detail), list);
    section.querySelector(".cards").append(card);
  }
}
function showCommands() {
  for (const command of data.commands) document.querySelector("#commands div").append(element("p", {}, element("code", {}, command)));
}

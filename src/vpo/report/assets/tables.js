// A table. A cell is text, a number, an element, {mean, low, high, certain}, or {run}. Columns sort, unless rows stand in parts.
function table(head, rows, { sorts = true, parts = false } = {}) {
  const body = element("tbody");
  const line = (row) => element("tr", row[0]?.run === undefined ? {} : { "data-run": row[0].run }, ...row.map((cell) => element("td", {}, cellText(cell))));
  const fill = (shown) => body.replaceChildren(...shown.map(line));
  const heads = head.map((name) => element("th", {}, name));
  if (parts) {
    rows.forEach(([part, ...row], at) => {
      if (!at || rows[at - 1][0] !== part) body.append(element("tr", { class: "part" }, element("td", {}, element("div", {}, part)), ...row.slice(1).map(() => element("td"))));
      body.append(line(row));
    });
    heads.shift();
  } else fill(rows);
  if (sorts && !parts) heads.forEach((each, column) => sortable(each, heads, (order) => fill(sorted(rows, column, order))));
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body));
}
function cellText(cell) {
  if (cell === null) return "–";
  if (typeof cell === "number") return Number.isInteger(cell) ? cell.toLocaleString("en") : cell.toFixed(3).replace("-", "−");
  if (typeof cell !== "object" || cell instanceof Node) return cell;
  if (cell.run !== undefined) return element("span", {}, element("i", { style: `background:${colour(cell.run)}` }), data.runs[cell.run].name);
  const text = (number) => number.toFixed(3).replace("-", "−");
  const band = cell.low === null ? "" : ` [${text(cell.low)}, ${text(cell.high)}]`;
  return element("span", {}, text(cell.mean), cell.certain ? " *" : "", element("small", {}, band));
}
function sortable(head, heads, sort) {
  head.setAttribute("tabindex", 0);
  const run = () => {
    const order = head.dataset.order === "1" ? -1 : 1;
    for (const each of heads) {
      delete each.dataset.order;
      each.removeAttribute("aria-sort");
    }
    head.dataset.order = order;
    head.setAttribute("aria-sort", order > 0 ? "ascending" : "descending");
    sort(order);
  };
  head.addEventListener("click", run);
  head.addEventListener("keydown", (event) => event.key === "Enter" && run());
}
// Rows by one column, unknown values last.
function sorted(rows, column, order) {
  const value = (row) => (row[column] !== null && typeof row[column] === "object" ? row[column].mean : row[column]);
  const compare = (a, b) => (typeof value(a) === "number" ? value(a) - value(b) : `${value(a)}`.localeCompare(`${value(b)}`, undefined, { numeric: true }));
  const [there, unknown] = [rows.filter((row) => row[column] !== null), rows.filter((row) => row[column] === null)];
  return [...there.sort((a, b) => order * compare(a, b)), ...unknown];
}
// Tables with the same `views` are one table, closed at first, of which a choice shows one.
function showTables() {
  const holder = document.querySelector("#tables .tables");
  const views = new Map();
  for (const each of data.tables) {
    if (each.cards) continue; // the cards show it
    if (!each.views) holder.append(element("h3", {}, each.title), table(each.head, each.rows));
    else views.set(each.views, [...(views.get(each.views) ?? []), each]);
  }
  for (const [name, some] of views) {
    const show = choice("what the table shows", some.map((each) => each.title));
    const inside = element("div");
    const draw = () => inside.replaceChildren(table(some[+show.value].head, some[+show.value].rows, { parts: true }));
    show.addEventListener("change", draw);
    const controls = some.length > 1 ? element("div", { class: "controls" }, element("label", {}, "show ", show)) : "";
    holder.append(element("details", {}, element("summary", {}, name), controls, inside));
    draw();
  }
}

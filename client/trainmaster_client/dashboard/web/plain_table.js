// Tables of few rows: wide ones scroll in their place, with a shadow; on a phone a row is a card that names each figure.

import { h } from "./dom.js";

const LONG = 40; // letters of a text that may break anywhere

export const scrolling = (label, ...children) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);

// Each cell keeps the head of its column, which style.css writes before it where the heads do not fit.
export function cardTable(label, table) {
  const columns = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, index) => (cell.dataset.column = columns[index]));
  table.classList.add("cards");
  return scrolling(label, table);
}

// The first cell of a row names it. `isNumber`: the cells are figures, on the right.
export function plainTable(label, heads, rows, { isNumber = false } = {}) {
  const look = (text) => (isNumber ? "number" : String(text).length > LONG ? "name" : null);
  return cardTable(label,
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((text, index) => h("th", { scope: "col", class: isNumber && index ? "number" : null }, text)))),
      h("tbody", {}, rows.map(([first, ...cells]) =>
        h("tr", {}, h("th", { scope: "row", class: "name" }, h("bdi", {}, first)), cells.map((text) => h("td", { class: look(text) }, h("bdi", {}, text))))))));
}

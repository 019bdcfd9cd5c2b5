// A table of few rows, with a shadow where it is wider than its place; the first cell of a row names it.

import { h } from "./dom.js";

const LONG = 40; // letters of a text that may break anywhere

// `isNumber`: the cells are figures, on the right.
export function plainTable(label, heads, rows, { isNumber = false } = {}) {
  const look = (text) => (isNumber ? "number" : String(text).length > LONG ? "name" : null);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((text, index) => h("th", { scope: "col", class: isNumber && index ? "number" : null }, text)))),
      h("tbody", {}, rows.map(([first, ...cells]) =>
        h("tr", {}, h("th", { scope: "row", class: "name" }, h("bdi", {}, first)), cells.map((text) => h("td", { class: look(text) }, h("bdi", {}, text))))))));
}

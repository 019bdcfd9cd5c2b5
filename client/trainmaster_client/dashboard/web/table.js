// A native table of many rows: the first ones at once, the rest in slices, and rows that did not change kept.

import { h, replace } from "./dom.js";

const FIRST_ROWS = 80;
const SLICE_ROWS = 300;

// columns: [{key, title, cell(row), sort(row)?, number?}]; a column with `sort` can be sorted by.
// keyOf(row, index): what makes a row the same one in the next update. stampOf(row): changes when its cells do.
export class Table {
  #rows = new Map(); // by key: {element, stamp}
  #turn = 0;
  #given = [];

  constructor({ caption, columns, keyOf, stampOf = JSON.stringify, open = null, sort = null, onsort = null }) {
    Object.assign(this, { columns, keyOf, stampOf, open, sort, onsort });
    this.head = h("tr", {});
    this.body = h("tbody", { "data-rows": true, onkeydown: (event) => this.#key(event), onclick: (event) => this.#click(event) });
    this.table = h("table", {}, h("caption", { class: "quiet" }, caption), h("thead", {}, this.head), this.body);
    this.element = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, this.table);
    this.#paintHead();
  }

  // Resolves once all rows are there.
  async update(rows) {
    this.#given = rows;
    this.#turn += 1;
    const turn = this.#turn;
    const sorted = this.#sorted(rows);
    this.table.setAttribute("aria-rowcount", String(sorted.length + 1));
    const keys = sorted.map((row, index) => String(this.keyOf(row, index)));
    this.#forget(new Set(keys));
    for (let begin = 0; begin < sorted.length; begin += begin ? SLICE_ROWS : FIRST_ROWS) {
      if (begin) await new Promise((resolve) => setTimeout(resolve));
      if (turn !== this.#turn) return;
      const end = Math.min(sorted.length, begin + (begin ? SLICE_ROWS : FIRST_ROWS));
      for (let index = begin; index < end; index += 1) this.#place(index, keys[index], sorted[index]);
    }
    this.#oneTabStop();
  }

  #place(index, key, row) {
    const stamp = this.stampOf(row);
    const kept = this.#rows.get(key);
    const element = kept?.element ?? h("tr", { tabindex: "-1", "data-key": key });
    if (kept?.stamp !== stamp) {
      replace(element, this.columns.map((one) => h("td", { class: one.number ? "number" : one.class }, one.cell(row))));
      this.#rows.set(key, { element, stamp });
    }
    element.row = row;
    const there = this.body.children[index];
    if (there !== element) this.body.insertBefore(element, there ?? null);
    if (index === 0) this.#oneTabStop();
  }

  #forget(keys) {
    for (const [key, { element }] of this.#rows) {
      if (keys.has(key)) continue;
      element.remove();
      this.#rows.delete(key);
    }
  }

  #sorted(rows) {
    const column = this.columns.find((one) => one.key === this.sort?.key && one.sort);
    if (!column) return rows;
    const sign = this.sort.descending ? -1 : 1;
    return [...rows].sort((a, b) => sign * compared(column.sort(a), column.sort(b)));
  }

  #paintHead() {
    replace(this.head, this.columns.map((one) => {
      const isBy = this.sort?.key === one.key;
      const sorted = isBy ? (this.sort.descending ? "descending" : "ascending") : null;
      const mark = isBy ? (this.sort.descending ? " ▼" : " ▲") : "";
      const title = one.sort
        ? h("button", { type: "button", "data-key": `sort-${one.key}`, onclick: () => this.#sortBy(one.key) }, one.title, h("span", { "aria-hidden": "true" }, mark))
        : one.title;
      return h("th", { scope: "col", class: one.number ? "number" : null, "aria-sort": sorted }, title);
    }));
  }

  #sortBy(key) {
    const isSame = this.sort?.key === key;
    if (isSame && this.sort.descending) this.sort = null;
    else this.sort = { key, descending: isSame };
    this.#paintHead();
    this.head.querySelector(`[data-key="sort-${key}"]`)?.focus();
    this.onsort?.(this.sort);
    this.update(this.#given);
  }

  // Tab stops at one row; the arrows continue from there.
  #oneTabStop() {
    if (this.body.querySelector('tr[tabindex="0"]')) return;
    this.body.firstElementChild?.setAttribute("tabindex", "0");
  }

  #key(event) {
    const row = event.target.closest("tr");
    if (!row || event.target !== row) return;
    const steps = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, Home: this.body.firstElementChild, End: this.body.lastElementChild };
    if (event.key === "Enter") this.open?.(row.row);
    else if (event.key in steps) this.#focus(steps[event.key]);
    else return;
    event.preventDefault();
  }

  #focus(row) {
    if (!row) return;
    for (const one of this.body.querySelectorAll('tr[tabindex="0"]')) one.setAttribute("tabindex", "-1");
    row.setAttribute("tabindex", "0");
    row.focus();
  }

  #click(event) {
    if (event.target.closest("a, button, input, select") || String(getSelection())) return;
    const row = event.target.closest("tr");
    if (row) this.open?.(row.row);
  }
}

// Nothing last, numbers by size, text by its letters with numbers in it by size.
function compared(a, b) {
  const [noA, noB] = [a === null || a === undefined || a === "", b === null || b === undefined || b === ""];
  if (noA || noB) return Number(noA) - Number(noB);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

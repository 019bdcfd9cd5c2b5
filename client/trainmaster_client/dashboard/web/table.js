// A native table of any length: only the rows that can be seen are in the document, each of one line.

import { h, replace } from "./dom.js";

const BEYOND = 12; // rows kept above and below what is seen, so that a fast scroll shows no hole
const USUAL_ROW = 40; // px, until a row was measured

// Rows to draw of `count` rows, the first of which lies `above` px over the window's top edge (negative: below it).
export function visibleRows({ count, above, height, rowHeight }) {
  const first = Math.max(0, Math.floor(above / rowHeight) - BEYOND);
  const last = Math.min(count, Math.ceil((above + height) / rowHeight) + BEYOND);
  return { first: Math.min(first, Math.max(0, count - 1)), last: Math.max(last, Math.min(count, first + 1)) };
}

// columns: [{key, title, cell(row), sort(row)?, number?, hint?}]; a column with `sort` can be sorted by.
// keyOf(row, index): what makes a row the same one in the next update. stampOf(row): changes when its cells do.
export class Table {
  #kept = new Map(); // rows in the document by key: {element, stamp}
  #given = [];
  #sorted = [];
  #rowHeight = 0;
  #active = null; // key of the row that Tab stops at
  #frame = null;
  #isListening = false;

  constructor({ caption, columns, keyOf, stampOf = JSON.stringify, open = null, sort = null, onsort = null }) {
    Object.assign(this, { columns, keyOf, stampOf, open, sort, onsort });
    this.head = h("tr", {});
    [this.above, this.below] = [gap(columns.length), gap(columns.length)];
    this.body = h("tbody", { "data-rows": true, onkeydown: (event) => this.#key(event), onclick: (event) => this.#click(event) });
    const widths = h("colgroup", {}, columns.map((one) => h("col", { class: `w-${one.key}` })));
    this.table = h("table", { class: "lines" }, h("caption", { class: "quiet" }, caption), widths, h("thead", {}, this.head), this.body);
    this.element = h("div", { class: "rows", role: "region", "aria-label": caption }, this.table);
    this.#paintHead();
  }

  update(rows) {
    this.#given = rows;
    this.#sorted = this.#inOrder(rows);
    this.table.setAttribute("aria-rowcount", String(this.#sorted.length + 1));
    this.#listen();
    this.#draw();
  }

  // Marks the row that something beside the table is about; null marks none.
  mark(key) {
    this.marked = key;
    for (const [one, { element }] of this.#kept) current(element, one === key);
  }

  focusRow(key) {
    const index = this.#sorted.findIndex((row, at) => String(this.keyOf(row, at)) === key);
    if (index >= 0) this.#focus(index);
  }

  #listen() {
    if (this.#isListening) return;
    this.#isListening = true;
    const looked = () => {
      if (this.element.isConnected) this.#soon();
      else {
        removeEventListener("scroll", looked);
        removeEventListener("resize", looked);
        this.#isListening = false;
      }
    };
    addEventListener("scroll", looked, { passive: true });
    addEventListener("resize", () => { this.#rowHeight = 0; looked(); });
    this.#soon(); // once it lies where it belongs
  }

  #soon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#draw();
    });
  }

  #draw() {
    const rows = this.#sorted;
    const rowHeight = this.#rowHeight || USUAL_ROW;
    const above = this.element.isConnected ? -(this.table.getBoundingClientRect().top + (this.head.offsetHeight || 0)) : 0;
    const { first, last } = visibleRows({ count: rows.length, above, height: innerHeight, rowHeight });
    const wanted = [];
    for (let index = first; index < last; index += 1) wanted.push([String(this.keyOf(rows[index], index)), rows[index], index]);
    const keys = new Set(wanted.map(([key]) => key));
    for (const [key, { element }] of this.#kept) {
      if (keys.has(key)) continue;
      element.remove();
      this.#kept.delete(key);
    }
    const elements = wanted.map(([key, row, index]) => this.#place(key, row, index));
    sized(this.above, first * rowHeight);
    sized(this.below, (rows.length - last) * rowHeight);
    arranged(this.body, [this.above, ...elements, this.below]);
    this.#oneTabStop(elements);
    const measured = elements[0]?.getBoundingClientRect().height;
    if (measured && Math.abs(measured - rowHeight) >= 0.5) {
      this.#rowHeight = measured;
      this.#soon();
    }
  }

  #place(key, row, index) {
    const stamp = this.stampOf(row);
    const kept = this.#kept.get(key);
    const element = kept?.element ?? h("tr", { tabindex: "-1", "data-key": key });
    if (kept?.stamp !== stamp) {
      replace(element, this.columns.map((one) => h("td", { class: [one.key, one.number && "number"].filter(Boolean).join(" ") }, one.cell(row))));
      this.#kept.set(key, { element, stamp });
    }
    element.row = row;
    element.setAttribute("aria-rowindex", String(index + 2));
    element.index = index;
    current(element, key === this.marked);
    return element;
  }

  #inOrder(rows) {
    const column = this.columns.find((one) => one.key === this.sort?.key && one.sort);
    if (!column) return rows;
    const sign = this.sort.descending ? -1 : 1;
    return [...rows].sort((a, b) => sign * compared(column.sort(a), column.sort(b)));
  }

  #paintHead() {
    replace(this.head, this.columns.map((one) => {
      const isBy = this.sort?.key === one.key;
      const sorted = isBy ? (this.sort.descending ? "descending" : "ascending") : null;
      const title = one.sort
        ? h("button", { type: "button", "data-key": `sort-${one.key}`, onclick: () => this.#sortBy(one.key) }, one.title, isBy ? h("span", { "aria-hidden": "true" }, this.sort.descending ? " ↓" : " ↑") : null)
        : one.title;
      return h("th", { scope: "col", class: [one.key, one.number && "number"].filter(Boolean).join(" "), "aria-sort": sorted, title: one.hint }, title);
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

  // Tab stops at one row: the last that had the focus, else the first; the arrows continue from there.
  #oneTabStop(elements) {
    const stop = this.#kept.get(this.#active)?.element ?? elements[0];
    for (const element of elements) element.setAttribute("tabindex", element === stop ? "0" : "-1");
  }

  #key(event) {
    const row = event.target.closest("tr");
    if (!row || event.target !== row) return;
    const page = Math.max(1, Math.floor(innerHeight / (this.#rowHeight || USUAL_ROW)) - 2);
    const steps = { ArrowDown: row.index + 1, ArrowUp: row.index - 1, PageDown: row.index + page, PageUp: row.index - page, Home: 0, End: this.#sorted.length - 1 };
    if (event.key === "Enter") this.open?.(row.row);
    else if (event.key in steps) this.#focus(Math.min(Math.max(steps[event.key], 0), this.#sorted.length - 1));
    else return;
    event.preventDefault();
  }

  // A row that is not in the document is scrolled to first, which draws it.
  #focus(index) {
    const key = String(this.keyOf(this.#sorted[index], index));
    this.#active = key;
    if (!this.#kept.has(key)) {
      const top = this.table.getBoundingClientRect().top + scrollY + this.head.offsetHeight;
      scrollTo(0, top + index * (this.#rowHeight || USUAL_ROW) - innerHeight / 2);
      this.#draw();
    }
    const element = this.#kept.get(key)?.element;
    this.#oneTabStop([...this.#kept.values()].map((one) => one.element));
    element?.focus({ preventScroll: true });
    element?.scrollIntoView({ block: "nearest" });
  }

  #click(event) {
    if (event.target.closest("a, button, input, select") || String(getSelection())) return;
    const row = event.target.closest("tr[data-key]");
    if (!row) return;
    this.#active = row.dataset.key;
    this.open?.(row.row);
  }
}

function gap(width) {
  return h("tr", { class: "gap", "aria-hidden": "true", hidden: true }, h("td", { colspan: String(width) }));
}

function sized(element, height) {
  element.hidden = height <= 0;
  element.firstElementChild.style.setProperty("--gap", `${height}px`);
}

function current(element, isCurrent) {
  if (isCurrent) element.setAttribute("aria-current", "true");
  else element.removeAttribute("aria-current");
}

// Moves only what is not in its place: an element that stays keeps its focus.
function arranged(parent, elements) {
  elements.forEach((element, index) => {
    const there = parent.children[index];
    if (there !== element) parent.insertBefore(element, there ?? null);
  });
  while (parent.children.length > elements.length) parent.lastElementChild.remove();
}

// Nothing last, numbers by size, text by its letters with numbers in it by size.
function compared(a, b) {
  const [noA, noB] = [a === null || a === undefined || a === "", b === null || b === undefined || b === ""];
  if (noA || noB) return Number(noA) - Number(noB);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a), String(b));
}

const collator = new Intl.Collator("en", { numeric: true });

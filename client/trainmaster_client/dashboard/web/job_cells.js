// How a row of the queue is drawn. Its words are those of every view: the dashboard's process sends them.

import { h } from "./dom.js";
import { localTimes } from "./format.js";
import { chip } from "./state_chip.js";

let known = {}; // by state: {sign, tone, phase}

// What the session says of states; phase is "live", "waiting" or "final".
export function knowStates(states) {
  known = states ?? {};
}

export const allStates = () => Object.keys(known);
export const statesOf = (phase) => allStates().filter((state) => known[state].phase === phase);
export const isIn = (phase, state) => known[state]?.phase === phase;

export const stateCell = (state) => chip(state, known[state] ?? { sign: "?", tone: "dim" });

const KEPT_END = 10; // letters of a name's end that are always shown: they tell sweeps and attempts apart

// A name that loses its middle where it is too long for its place; the whole of it stays in the document.
export function cutName(text, attributes = {}, tag = "span") {
  const letters = [...text];
  const head = letters.slice(0, -KEPT_END).join("");
  const tail = letters.slice(-KEPT_END).join("");
  return h(tag, { ...attributes, class: "cut", title: text }, head ? h("span", { class: "head" }, head) : null, tail);
}

export function nameCell(row) {
  if (!row.name) return cutName(row.cells.job);
  return cutName(row.name, { href: hrefOf(row), tabindex: "-1" }, "a");
}

export const hrefOf = (row) => (row.name ? `#/${row.is_job ? "jobs" : "arrays"}/${encodeURIComponent(row.name)}` : "");

// What comes next: of a running job a bar of what it ran of its longest time; of a waiting one when it starts, as a
// dot at p50 with a whisker to p90. `reach`: seconds that the whole width stands for, of all rows together.
export function nextCell(row, { now, reach }) {
  if (row.ran_seconds !== null && row.left_seconds !== null) {
    const share = row.ran_seconds / Math.max(1, row.ran_seconds + row.left_seconds);
    return h("div", { class: "next-line", title: `ran ${row.cells.ran}, at most ${row.cells.left} left` },
      h("span", { class: "ran", vars: { "--ran": `${(100 * share).toFixed(1)}%` } }, h("i", {})),
      h("span", { class: "next-said" }, row.cells.left, h("span", { class: "dim" }, " left at most")));
  }
  if (!row.starts_p50) return row.phase === "live" ? h("span", { class: "dim" }, row.cells.ran === "-" ? "" : `ran ${row.cells.ran}`) : null;
  const [from, to] = [row.starts_p50, row.starts_p90].map((at) => placeOf(Math.max(0, (new Date(at) - now) / 1000), reach));
  return h("div", { class: "next-line", title: `starts in ${row.cells.starts}; in 9 of 10 cases within ${row.cells.starts_late}` },
    h("span", { class: "whisker", vars: { "--from": `${from.toFixed(1)}%`, "--wide": `${Math.max(0, to - from).toFixed(1)}%` } }, h("i", {}), h("b", {})),
    h("span", { class: "next-said" }, row.cells.starts === "now" ? "now" : `in ${row.cells.starts}`, h("span", { class: "dim" }, ` · p90 ${row.cells.starts_late}`)));
}

// By the root, so that minutes can be told apart beside days.
const placeOf = (seconds, reach) => 100 * Math.sqrt(Math.min(1, seconds / Math.max(1, reach)));

// Seconds until the last of these rows is likely to have started.
export function reachOf(rows, now) {
  let most = 3600;
  for (const row of rows) if (row.starts_p90) most = Math.max(most, (new Date(row.starts_p90) - now) / 1000);
  return most;
}

const said = (key) => (row) => h("span", { title: localTimes(row.cells.reason) }, localTimes(row.cells[key]));
const CELLS = { job: nameCell, state: (row) => stateCell(row.cells.state), short: said("short"), reason: said("reason") };
const SORTS = {
  priority: (row) => Number(row.cells.priority),
  position: null, // the order that the rows come in
  reason: null,
  short: null,
};

// How wide a job is, and where; on a phone its team, too, which has no column there.
export const WHERE = {
  key: "where",
  title: "Width",
  cell: ({ cells }) => h("span", { title: cells.instances }, cells.count, " ", h("span", { class: "dim" }, cells.pool, h("span", { class: "on-phone" }, ` · ${cells.team}`))),
  sort: ({ cells }) => `${cells.pool} ${cells.count}`,
};

// Columns of a table, by their keys; further ones may stand between them.
export function columns(known_, wanted) {
  return wanted.map((one) => (typeof one === "string" ? column(known_.find(({ key }) => key === one)) : one));
}

function column({ key, title, is_number: number }) {
  const sort = key in SORTS ? SORTS[key] : (row) => row.cells[key];
  return { key, title, number, cell: CELLS[key] ?? ((row) => row.cells[key]), sort };
}

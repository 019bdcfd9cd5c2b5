// How a row of the queue is drawn. Its words are those of every view: the dashboard's process sends them.

import { h } from "./dom.js";

let known = {}; // by state: {sign, tone, phase}

// What the session says of states; phase is "live", "waiting" or "final".
export function knowStates(states) {
  known = states ?? {};
}

export const allStates = () => Object.keys(known);
export const statesOf = (phase) => allStates().filter((state) => known[state].phase === phase);
export const isIn = (phase, state) => known[state]?.phase === phase;

// A sign stands beside the word, so that no state is known by its colour alone.
export function stateCell(state) {
  const { sign, tone } = known[state] ?? { sign: "?", tone: "dim" };
  return h("span", { class: `job-state ${tone}` }, h("span", { "aria-hidden": "true" }, `${sign} `), state);
}

export function nameCell(row) {
  if (!row.is_job || !row.name) return h("span", { class: row.name ? "name" : "dim" }, row.cells.job);
  return h("a", { class: "name", href: hrefOf(row), tabindex: "-1" }, row.name);
}

export const hrefOf = (row) => (row.is_job && row.name ? `#/jobs/${encodeURIComponent(row.name)}` : "");

const CELLS = {
  job: nameCell,
  state: (row) => stateCell(row.cells.state),
  short: (row) => h("span", { title: row.cells.reason }, row.cells.short),
};
const CLASSES = { job: "name-cell", reason: "why", short: "why" };
const SORTS = {
  priority: (row) => Number(row.cells.priority),
  age: (row) => row.submitted_at,
  ran: (row) => row.started_at,
  left: (row) => row.ends_by,
  starts_range: (row) => row.starts_p50,
  position: null, // the order that the rows come in
  reason: null,
  short: null,
};

// Columns of a table, by their keys; further ones may stand between them.
export function columns(known_, wanted) {
  return wanted.map((one) => (typeof one === "string" ? column(known_.find(({ key }) => key === one)) : one));
}

function column({ key, title, is_number: number }) {
  const sort = key in SORTS ? SORTS[key] : (row) => row.cells[key];
  return { key, title, number, class: CLASSES[key], cell: CELLS[key] ?? ((row) => row.cells[key]), sort };
}

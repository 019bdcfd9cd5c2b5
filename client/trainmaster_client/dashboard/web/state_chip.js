// A state as a chip: a shape of its own beside the word, so that no state is known by its colour alone.

import { h, svg } from "./dom.js";

// Shapes in a square of 12: what is filled, then what is drawn as a line.
const SHAPES = {
  running: ["M3 2l7 4-7 4z", ""],
  starting: ["M6 6V1.8A4.2 4.2 0 0 1 10.2 6z", "M6 1.8a4.2 4.2 0 1 0 .01 0"],
  pending: ["", "M6 1.8a4.2 4.2 0 1 0 .01 0"],
  held: ["M3 2h2.2v8H3zM6.8 2H9v8H6.8z", ""],
  preempting: ["", "M2 2v8M10.5 6H4.5M7 3.5L4.5 6 7 8.5"],
  preempted: ["", "M10 6a4 4 0 1 1-1.3-3M9 .8V3.2H6.6"],
  stopping: ["M2 2h4v8H2z", "M2 2h8v8H2z"],
  completed: ["", "M2 6.5l2.7 2.7L10 3.2"],
  failed: ["", "M2.5 2.5l7 7M9.5 2.5l-7 7"],
  stopped: ["M2 2h8v8H2z", ""],
};

// mark: {sign, tone} as the session says it; a state that this release does not know has its sign.
export function chip(state, { sign, tone }) {
  const shape = SHAPES[state];
  const picture = shape
    ? svg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, shape[0] && svg("path", { class: "filled", d: shape[0] }), shape[1] && svg("path", { class: "drawn", d: shape[1] }))
    : h("span", { "aria-hidden": "true" }, sign);
  return h("span", { class: `chip ${tone}` }, picture, state);
}

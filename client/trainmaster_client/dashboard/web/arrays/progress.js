// How far an array is: a bar of its tasks by what became of them, and the same in words.

import { h } from "../dom.js";
import { count } from "../format.js";

const KINDS = ["completed", "failed", "stopped", "running", "waiting", "held"];

export function progress(tasks) {
  const parts = KINDS.filter((kind) => tasks[kind] > 0);
  const said = parts.map((kind) => `${count(tasks[kind])} ${kind}`).join(", ");
  return h("div", { class: "next-line", title: said },
    h("div", { class: "task-bar", "aria-hidden": "true" }, parts.map((kind) => h("i", { class: `tasks-${kind}`, vars: { "--share": `${(100 * tasks[kind]) / tasks.total}%` } }))),
    h("span", { class: "next-said" }, `${count(tasks.completed)} of ${count(tasks.total)}`, h("span", { class: "quiet" }, `: ${said}`)));
}

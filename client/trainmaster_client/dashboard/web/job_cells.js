// How a job is written in a row: its name, state, instances, times and the reason of its wait.

import { h } from "./dom.js";
import { DASH, clock, duration, instances, reason, secondsBetween, since } from "./format.js";

// A sign beside the word, so that no state is known by its colour alone.
const SIGNS = {
  running: ["▶", "good"],
  starting: ["◔", "good"],
  pending: ["○", "dim"],
  held: ["‖", "warn"],
  preempting: ["⇤", "warn"],
  preempted: ["↺", "warn"],
  stopping: ["◧", "warn"],
  completed: ["✓", "good"],
  failed: ["✕", "bad"],
  stopped: ["■", "dim"],
};
export const LIVE = new Set(["starting", "running", "preempting", "stopping"]);
export const WAITING = new Set(["pending", "preempted", "held"]);
export const FINAL = new Set(["completed", "failed", "stopped"]);
export const STATES = Object.keys(SIGNS);

export function stateCell(state) {
  const [sign, kind] = SIGNS[state] ?? ["?", "dim"];
  return h("span", { class: `job-state ${kind}` }, h("span", { "aria-hidden": "true" }, `${sign} `), state);
}

export function nameCell(job) {
  if (!job.name) return h("span", { class: "dim" }, `(${job.team})`);
  return h("a", { class: "name", href: `#/jobs/${encodeURIComponent(job.name)}`, tabindex: "-1" }, job.name);
}

export function whereCell(job) {
  return [h("span", {}, job.pool), " ", h("span", { class: "dim" }, instances(job.instances, job.capacity_type))];
}

// Of a job that runs: how long it did, and how long it may at most.
export function ranCell(job, now = new Date()) {
  if (!LIVE.has(job.state)) return job.submitted_at ? `waits ${since(job.submitted_at, now)}` : DASH;
  const ran = since(job.training_since ?? job.started_at, now);
  const left = secondsBetween(now, job.ends_by);
  if (left === null) return ran;
  return [ran, h("span", { class: "dim", title: `Ends at ${clock(job.ends_by, now)} at the latest` }, ` / ${duration(left)} left`)];
}

export function startsCell(job, estimate, now = new Date()) {
  if (!WAITING.has(job.state) || !estimate?.p50) return "";
  const late = estimate.p90 ? ` (${clock(estimate.p90, now)})` : "";
  return `${clock(estimate.p50, now)}${late}`;
}

export function whyCell(job) {
  return reason(job.waiting ?? job.reason, job.state);
}

export function positionCell(job) {
  if (job.position !== null && job.position !== undefined) return String(job.position);
  return job.ahead_at_least ? `>${job.ahead_at_least}` : "";
}

// What a reader may look for in a row.
export function textOf(job) {
  return [job.name, job.team, job.pool, job.state, Object.keys(job.instances ?? {}).join(" "), whyCell(job)].join(" ").toLowerCase();
}

// The same row from one answer to the next; others' jobs have no name, so their rank has to do.
export function keyOf(job, index) {
  return job.name ? `job ${job.name}` : `${job.team} ${job.pool} ${job.started_at ?? job.position ?? index} ${index}`;
}

// What became of a job, from its history: waits, start-ups, training, and what ended each of them.

import { h } from "./dom.js";
import { clockSeconds, duration, localTimes, reason } from "./format.js";

const KINDS = {
  pending: ["waited", "wait"],
  preempted: ["waited", "wait"],
  held: ["held", "wait"],
  starting: ["started up", "startup"],
  running: ["trained", "training"],
  preempting: ["was being preempted", "stopping"],
  stopping: ["was being stopped", "stopping"],
};

// [{kind, verb, attempt, from, to (null: now), why (what ended it)}]
export function segments(job, now = new Date()) {
  const steps = [...(job.history ?? [])].sort((a, b) => new Date(a.at) - new Date(b.at));
  const found = [];
  steps.forEach((step, index) => {
    const [verb, kind] = KINDS[step.to] ?? [];
    if (!kind) return;
    const next = steps[index + 1];
    found.push({ kind, verb, attempt: step.attempt ?? 0, from: new Date(step.at), to: next ? new Date(next.at) : null, why: next ? (next.reason?.message ?? reason(next.reason, next.to)) : "", then: next?.to ?? null });
  });
  return found.map((one) => ({ ...one, seconds: ((one.to ?? now) - one.from) / 1000 }));
}

// A bar whose parts are as long as they took; the list below has the same in words.
export function story(job, now = new Date()) {
  const parts = segments(job, now);
  if (!parts.length) return h("p", { class: "note" }, "Its history is not known.");
  const whole = parts.reduce((sum, one) => sum + one.seconds, 0) || 1;
  const bar = h("div", { class: "story", "aria-hidden": "true" }, parts.map((one) =>
    h("span", { class: `story-${one.kind}`, vars: { "--share": String(Math.max(one.seconds / whole, 0.004)) }, title: words(one) },
      one.seconds / whole > 0.12 ? `${one.verb} ${duration(one.seconds)}` : "")));
  const items = parts.map((one) => h("li", {}, h("span", { class: `story-key story-${one.kind}`, "aria-hidden": "true" }), h("span", { class: "dim" }, clockSeconds(one.from, now)), " ", words(one)));
  return [bar, h("ol", { class: "steps" }, items), wasted(job)];
}

// The stop that a preemption asked for has been explained by what it ended.
function words(one) {
  const of = one.kind === "wait" ? "" : `attempt ${one.attempt} `;
  const now = one.to ? "" : " so far";
  const until = { preempting: "preempted", preempted: "preempted", stopping: "stopped" }[one.then] ?? one.then;
  const isSaid = one.kind !== "stopping" && (until === "preempted" || one.why);
  return `${of}${one.verb} ${duration(one.seconds)}${now}${isSaid ? `, then ${[until, localTimes(one.why)].filter(Boolean).join(": ")}` : ""}`;
}

function wasted(job) {
  const causes = Object.entries(job.wasted_seconds ?? {}).filter(([, seconds]) => Number(seconds) > 0);
  if (!causes.length) return null;
  return h("p", {}, "Lost so far: ", causes.map(([cause, seconds]) => `${duration(seconds)} to ${cause.replaceAll("_", " ")}`).join(", "), ".");
}

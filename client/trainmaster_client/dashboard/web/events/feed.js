// The feed of events: pages of the API and later answers put together, each event once, newest first.

export const MOST_KEPT = 2000;

const keyOf = (event) => event.id ?? JSON.stringify([event.at, event.kind, event.team, event.job, event.detail]);

// What is new joined to what is there; the oldest go where there are too many.
export function joined(known, more, most = MOST_KEPT) {
  const found = new Map(known.map((one) => [keyOf(one), one]));
  for (const one of more) found.set(keyOf(one), one);
  return [...found.values()].sort((one, other) => order(other.at, one.at) || order(keyOf(one), keyOf(other))).slice(0, most);
}

const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

// What a person reads of an event: `what` and `why` of its detail, whatever is there of them.
export function sentences(event) {
  const detail = event.detail ?? {};
  if (typeof detail === "string") return { what: detail, why: "", todo: "", undo: "" };
  return {
    what: detail.what ?? event.kind ?? "",
    why: detail.why ?? "",
    todo: detail.todo ?? "",
    undo: detail.undo ?? "",
  };
}

// Those in which every word of the search occurs, whatever its case.
export function searched(events, search) {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return events;
  return events.filter((event) => {
    const { what, why, todo, undo } = sentences(event);
    const text = [event.kind, event.team, event.job, event.at, what, why, todo, undo].join(" ").toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const TROUBLES = new Set([
  "Job Failed", "Budget Warning", "Platform Warning", "Rule Violated", "Unmanaged Job", "Job Start Refused",
  "Preemption Did Not Help", "Dependents Ended", "Array Held",
]);
const NOTICES = new Set([
  "Job Preempted", "Job Idle", "Job Requeued", "Job Underused", "Job Unguarded", "Checkpoint Overdue", "Job Retried",
  "Job Stays On Spot", "Job Stopped", "Job Loss Warning",
]);

// `trouble`, `notice` or `news`: how loudly it is shown.
export const weightOf = (kind) => (TROUBLES.has(kind) ? "trouble" : NOTICES.has(kind) ? "notice" : "news");

export const KINDS = [
  "Job Completed", "Job Stopped", "Job Failed", "Job Retried", "Job Preempted", "Job Idle", "Job Busy Again",
  "Job Requeued", "Job Underused", "Job Unguarded", "Checkpoint Overdue", "Job Moved To On-Demand", "Job Stays On Spot",
  "Unmanaged Job", "Rule Violated", "Budget Warning", "Job Start Refused", "Preemption Did Not Help",
  "Dependents Ended", "Array Held", "Array Ended", "Platform Warning", "Job Loss Warning",
];

// Why a job waits: who holds what it needs and until when, who goes first, and what would help.

import { jobActions } from "./actions.js";
import { h } from "./dom.js";
import { clock, localTimes } from "./format.js";
import { cutName } from "./job_cells.js";
import { otherShape } from "./other_shape.js";

const FOR_INSTANCES = new Set(["capacity", "ahead", "reservation", "quota", "account-limit"]);

// `wait` and `questions` as the dashboard's process words them; `job` as the API answers it.
export function waitReport({ job, row, wait, questions }, context) {
  const { now } = context;
  return [
    row.cells.reason ? h("p", {}, localTimes(row.cells.reason, now)) : null,
    starts(job, now),
    wait.trouble ? h("p", { class: "note" }, `Who holds what it needs is not known: ${wait.trouble}`) : null,
    parties("In use by", wait.users, wait.unnamed_users, (one) => (one.ends_by ? (new Date(one.ends_by) > now ? `until ${clock(one.ends_by, now)}` : "due to end") : "no certain end")),
    parties("Ahead of it", wait.ahead, wait.unnamed_ahead, (one) => `priority ${one.priority}`),
    helps({ job, row, wait, questions }, context),
  ];
}

function starts(job, now) {
  if (!job.estimated_start?.p50) return job.estimate_note ? h("p", { class: "note" }, `Its start ${localTimes(job.estimate_note, now)}.`) : null;
  return h("p", {}, "Likely start ", h("b", { class: "time" }, clock(job.estimated_start.p50, now)), h("span", { class: "dim" }, `, in 9 of 10 cases by ${clock(job.estimated_start.p90, now)}.`));
}

function parties(title, all, further, said) {
  if (!all.length) return null;
  return [
    h("p", { class: "label" }, title),
    h("ul", { class: "users", "aria-label": title }, all.map((one) =>
      h("li", {},
        one.name ? cutName(one.name, { href: `#/jobs/${encodeURIComponent(one.name)}` }, "a") : h("span", { class: "dim" }, one.shown),
        h("span", { class: "until time" }, said(one)),
        h("span", { class: "dim" }, `${one.team} · ${one.instances}`))),
      further ? h("li", { class: "dim" }, `and ${further} more`) : null),
  ];
}

function helps({ job, row, wait, questions }, context) {
  const shape = context.session.changes && FOR_INSTANCES.has(row.code) ? otherShape(job, context) : null;
  const buttons = [shape, ...jobActions(job, questions, context)].filter(Boolean);
  if (!wait.help && !buttons.length) return null;
  const advice = wait.help && `${wait.help[0].toUpperCase()}${wait.help.slice(1)}${/\.$|trainmaster /.test(wait.help) ? "" : "."}`;
  return [
    h("p", { class: "label" }, row.phase === "waiting" ? "What would help" : "What you may do"),
    advice ? h("p", {}, advice) : null,
    buttons.length ? h("p", { class: "row" }, buttons) : null,
  ];
}

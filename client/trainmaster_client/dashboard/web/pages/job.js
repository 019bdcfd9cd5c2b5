// The page of one job: what became of it, its curves, checkpoints, cost and log, and what to do where it failed.

import { jobActions } from "../actions.js";
import { Trouble } from "../api.js";
import { chart, short } from "../chart.js";
import { command } from "../copied.js";
import { h, replace } from "../dom.js";
import { clock, duration, localTimes, percent, since, usd } from "../format.js";
import { isIn, stateCell } from "../job_cells.js";
import { LogView } from "../log_view.js";
import { remedy } from "../resubmit.js";
import { story } from "../story.js";
import { waitReport } from "../wait_report.js";

const WIDEST = 1400;
const TWO_COLUMNS = 838; // of the page, as the style sheet has it
const AROUND = 24; // px of a chart that are not its picture

export const page = {
  title: "Job",
  refreshSeconds: 5,

  async load(api, params, signal) {
    const path = `jobs/${encodeURIComponent(params.name)}`;
    const options = { signal };
    const now = { now: new Date().toISOString() };
    const { job, row, wait, questions } = await api.local(path, now, options);
    const hasRun = (job.attempts ?? []).length > 0;
    const nothing = { curves: [], series: [] };
    const [curves, gpu] = await Promise.all([
      hasRun ? api.local(`${path}/curves`, {}, options).catch(said(signal)) : nothing,
      hasRun ? api.local(`${path}/gpu`, now, options).catch(said(signal)) : nothing,
    ]);
    return { job, row, wait, questions, curves, gpu };
  },

  render(root, { job, row, wait, questions, curves, gpu }, context) {
    const parts = (context.state.parts ??= built(job, context));
    if (parts.head.parentElement !== root) replace(root, Object.values(parts).map((one) => one.element ?? one));
    const isOver = isIn("final", job.state);
    replace(parts.head, head({ job, row, wait, questions }, context));
    replace(parts.failure, failure(job, context), warnings(job, context.now));
    replace(parts.story, h("h2", {}, "Story"), story(job, context.now));
    replace(parts.curves, pictures(job, curves, gpu, root.clientWidth, context));
    parts.log.know(job, isOver);
    parts.log.start();
  },
};

// A page without its curves is still a page: why they are not there is said in their place.
function said(signal) {
  return (trouble) => {
    if (signal.aborted || !(trouble instanceof Trouble)) throw trouble;
    return { trouble: trouble.detail, curves: [], series: [] };
  };
}

function built(job, context) {
  const panel = (name) => h("section", { class: "panel", "aria-label": name });
  return { head: h("div", {}), failure: h("div", {}), story: panel("Story"), curves: h("div", { class: "charts" }), log: new LogView(context.api, job.name) };
}

const counted = (number, one, many) => `${number ?? 0} ${Number(number) === 1 ? one : many}`;

function head({ job, row, wait, questions }, context) {
  const isWaiting = isIn("waiting", job.state);
  const reason = localTimes(row.cells.reason, context.now);
  const aside = isWaiting
    ? h("section", { class: "panel", "aria-label": "Why it waits" }, h("h2", {}, "Why it waits"), waitReport({ job, row, wait, questions }, context))
    : null;
  return [
    h("h1", {}, job.name, " ", stateCell(job.state)),
    isWaiting ? null : h("p", { class: "row" }, jobActions(job, questions, context)),
    h("div", { class: aside ? "job-top" : "job-top alone" },
      h("div", {},
        reason && !isWaiting ? h("p", {}, reason) : null,
        h("dl", { class: "facts" }, facts(job, row, context).filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
        family(job),
        commands(job, isWaiting, context)),
      aside),
  ];
}

function facts(job, row, { now }) {
  const attempts = job.attempts ?? [];
  const owner = (job.submitted_by ?? "").split("/").pop();
  const array = job.array?.name;
  return [
    ["Where", `${row.cells.pool}, ${row.cells.instances}`],
    ["By", [job.team, owner].filter(Boolean).join(" / ")],
    ["Submitted", `${clock(job.submitted_at, now)}${job.ended_at ? `, ended ${clock(job.ended_at, now)}` : ""}`],
    ["Array", array ? [h("a", { href: `#/arrays/${encodeURIComponent(array)}` }, array), `, task ${job.array.index}`] : null],
    ["Width", width(job.elastic)],
    ["Attempts", `${attempts.length}, ${counted(job.preemptions, "preemption", "preemptions")}, ${counted(job.retries, "retry", "retries")}`],
    ["Cost", `${usd(job.cost_usd)}${job.cost_is_estimate ? " so far, an estimate" : ""}${likelyTotal(job, row)}`],
    ["Checkpoint", checkpoint(attempts, now)],
    ["Ends", job.ends_by ? `by ${clock(job.ends_by, now)} at the latest (${duration((new Date(job.ends_by) - now) / 1000)})` : null],
    ["Priority", `${job.priority}${job.effective_priority > job.priority ? ` (${job.effective_priority} with its age)` : ""}`],
    ["Position", isIn("waiting", job.state) ? place(job) : null],
  ];
}

// Instances of an elastic job beside the most that it may have, and what the queue says of them.
function width(elastic) {
  if (!elastic) return null;
  const most = Math.max(...elastic.widths);
  return elastic.why ?? `${elastic.width ?? "none yet"} of ${most} instances`;
}

const linked = (name) => h("a", { href: `#/jobs/${encodeURIComponent(name)}` }, name);

// Of a job in its first attempt, whose whole cost is that attempt's.
function likelyTotal(job, { ran_seconds: ran, left_seconds: left }) {
  if ((job.attempts ?? []).length !== 1 || !job.cost_usd || !ran || left === null) return "";
  return `; at most ${usd((job.cost_usd * (ran + left)) / ran)} if it runs for its longest time`;
}

// What it waits for, itself, and what waits for it, from left to right.
function family(job) {
  const [before, behind] = [job.after ?? [], job.dependents ?? []];
  if (!before.length && !behind.length) return null;
  const further = (job.dependents_count ?? behind.length) - behind.length;
  const column = (label, items) => (items.length ? h("ul", { "aria-label": label }, items.map((item) => h("li", {}, item))) : null);
  const parents = before.map((one) => [one.job ? linked(one.job) : "another team's job", h("span", { class: "dim" }, ` ${[one.type === "afterok" ? "" : one.type, one.state].filter(Boolean).join(", ")}`)]);
  return h("section", { class: "family", "aria-label": "Parents and children" },
    column("It waits for", parents), h("p", {}, h("b", {}, job.name)), column("Wait for it", [...behind.map(linked), ...(further > 0 ? [`and ${further} more`] : [])]));
}

// What a reader would type for the same in a terminal.
function commands(job, isWaiting, { say }) {
  const wanted = [isWaiting ? `trainmaster why ${job.name}` : `trainmaster logs ${job.name}${isIn("live", job.state) ? " --follow" : ""}`, `trainmaster show ${job.name}`];
  return h("ul", { class: "commands", "aria-label": "In a terminal" }, wanted.map((text) => h("li", {}, command(text, say))));
}

function place(job) {
  return job.position ? `${job.position} in ${job.pool}` : job.ahead_at_least ? `at least ${job.ahead_at_least} jobs ahead` : "";
}

function checkpoint(attempts, now) {
  const last = attempts.map((one) => one.last_checkpoint).filter(Boolean).sort().at(-1);
  if (!last) return attempts.length ? "none is known" : null;
  const bound = attempts.at(-1)?.last_checkpoint_is_lower_bound ? " or newer" : "";
  return `${clock(last, now)}${bound}, ${since(last, now)} ago`;
}

function failure(job, context) {
  const failed = (job.attempts ?? []).filter((one) => one.diagnosis).at(-1);
  if (!failed) return null;
  const { diagnosis } = failed;
  const code = diagnosis.exit_code === null || diagnosis.exit_code === undefined ? "" : `, exit code ${diagnosis.exit_code}`;
  return h("section", { class: "warning", "aria-label": "Why it failed" },
    h("h2", {}, `Why attempt ${failed.attempt} failed: ${diagnosis.class}${code}`),
    h("p", {}, diagnosis.advice),
    diagnosis.evidence ? h("pre", { class: "evidence", tabindex: "0" }, diagnosis.evidence) : null,
    job.state === "failed" ? remedy(job, diagnosis, context) : h("p", {}, "It was retried."),
  );
}

function warnings(job, now) {
  const live = (job.attempts ?? []).find((one) => !one.ended_at);
  if (!live) return null;
  const found = [];
  if (live.idle_since) found.push(`Its GPUs have been idle for ${since(live.idle_since, now)}${live.stop_due ? `; it will be stopped at ${clock(live.stop_due, now)} unless they are used again` : ""}.`);
  if (live.underused_since) found.push(`Its GPUs have been underused for ${since(live.underused_since, now)}.`);
  if (live.unguarded) found.push(`Its GPUs are not monitored: ${live.unguarded.message}`);
  if (live.checkpoint_overdue) found.push("Its newest checkpoint is older than the policy allows.");
  return found.map((text) => h("p", { class: "warning" }, text));
}

const CURVES = [
  { name: "loss", title: "Loss", log: true },
  { name: "tok_s", title: "Tokens a second" },
  { name: "goodput", title: "Goodput", bounds: [0, 1], yText: (value) => percent(value) },
];

function pictures(job, curves, gpu, width, context) {
  const wide = Math.min(WIDEST, (width >= TWO_COLUMNS ? width / 2 - 8 : width) - AROUND);
  const byStep = (name) => curves.curves.map((one) => ({
    label: `attempt ${one.attempt}`,
    points: one.points.filter((point) => point[name] !== undefined).map((point) => [point.step, point[name]]),
  }));
  const ticks = [...new Set(curves.curves.flatMap((one) => one.points.map((point) => point.ckpt_step)).filter((step) => step > 0))];
  const notes = [
    curves.trouble && `No curves: ${curves.trouble}`,
    gpu.trouble && `No GPU use: ${gpu.trouble}`,
    curves.has_more && "The log is long: more of the curves comes with each look.",
  ].filter(Boolean);
  const shown = CURVES.map((one) => ({ ...one, series: byStep(one.name) })).filter((one) => one.name === "loss" || one.series.some((line) => line.points.length));
  return [
    notes.map((text) => h("p", { class: "note" }, text)),
    shown.map((one) => chart({ yText: short, ...one, ticks, width: wide, xText: short, xName: "steps", nothing: (job.attempts ?? []).length ? "No line of its log has a step and a loss." : "It has not started." })),
    chart({ title: gpu.gpus ? `GPU use, % of a host's ${counted(gpu.gpus, "GPU", "GPUs")}` : "GPU use, % of one GPU, summed over a host's", series: gpuSeries(gpu), bounds: gpu.gpus ? [0, 100] : null, width: wide, yText: short, xText: (at) => clock(new Date(at * 1000), context.now), nothing: "CloudWatch has no GPU use of it." }),
  ];
}

function gpuSeries(gpu) {
  return gpu.series.map((one) => ({ label: `attempt ${one.attempt}, ${one.host}`, points: one.points }));
}

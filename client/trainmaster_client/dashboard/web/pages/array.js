// The page of one array: how far it is, which values were best, which tasks failed and why, and those once more.

import { confirm, button } from "../actions.js";
import { resultsPicture } from "../arrays/picture.js";
import { progress } from "../arrays/progress.js";
import { rerunButton } from "../arrays/rerun.js";
import { axesOf, bestFirst, failedByClass } from "../arrays/results.js";
import { short } from "../chart.js";
import { command } from "../copied.js";
import { h, replace } from "../dom.js";
import { clock, localTimes, reason, usd } from "../format.js";
import { cutName, isIn, stateCell } from "../job_cells.js";
import { Table } from "../table.js";

const LIVE_SECONDS = 10;
const OVER_SECONDS = 60;
const READING_SECONDS = 2; // while metrics of many tasks are read
const MOST_VALUES = 6; // columns of the table
const jobHref = ({ name }) => `#/jobs/${encodeURIComponent(name)}`;

export const page = {
  title: "Array",
  refreshSeconds: LIVE_SECONDS,
  pauseSeconds: ({ array, note }) => (note ? READING_SECONDS : isIn("final", array.state) ? OVER_SECONDS : LIVE_SECONDS),
  load: (api, { name }, signal) => api.local(`arrays/${encodeURIComponent(name)}`, {}, { signal }),

  render(root, data, context) {
    const { state, params } = context;
    const metric = data.metrics.includes(params.metric) ? params.metric : (data.metrics.find((name) => /loss|error|perplexity/i.test(name)) ?? data.metrics[0] ?? "");
    const isLargest = params.largest ? params.largest === "true" : !/loss|error|perplexity|time|seconds/i.test(metric);
    const sorted = bestFirst(data.tasks, metric, isLargest);
    const best = sorted[0]?.state === "completed" && metric in sorted[0].metrics ? sorted[0] : null;
    const axes = axesOf(data.values, data.tasks);
    const columns = axes.slice(0, MOST_VALUES).map((axis) => axis.name);
    const stamp = JSON.stringify([columns, metric]);
    if (state.stamp !== stamp) Object.assign(state, { stamp, table: tasksTable(columns, metric, context) });
    replace(root,
      head(data.array, context),
      bestSaid(best, { metric, axes, context }),
      failures(data.tasks),
      data.note ? h("p", { class: "note", role: "status" }, data.note) : null,
      h("h2", {}, "Values and results"),
      data.metrics.length ? choice(data.metrics, { metric, isLargest, setParams: context.setParams }) : h("p", { class: "note" }, "No task has a metric: the request has no MetricDefinitions, or no task printed one yet."),
      resultsPicture({ ...data, metric, isLargest, best, width: Math.min(root.clientWidth - 34, 1400), hrefOf: jobHref }),
      h("h2", {}, `Tasks, the best first`),
      state.table.element);
    state.table.update(sorted);
  },
};

function head(array, context) {
  const facts = [
    ["tasks", progress(array.tasks)],
    ["team", `${array.team}, by ${(array.submitted_by ?? "").split("/").pop()}`],
    ["pool", [array.pool, array.position && `position ${array.position}`, `priority ${array.priority}`, array.at_most && `at most ${array.at_most} at once`].filter(Boolean).join(", ")],
    ["submitted", `${clock(array.submitted_at, context.now)}${array.ended_at ? `, ended ${clock(array.ended_at, context.now)}` : ""}`],
    ["cost", `${usd(array.usd)}, ${array.instance_hours ?? "?"} instance-hours`],
    ["why", localTimes(reason(array.waiting ?? array.reason, array.state), context.now)],
    ["reruns", array.rerun_of && h("a", { href: `#/arrays/${encodeURIComponent(array.rerun_of)}` }, array.rerun_of)],
  ];
  const lines = [`trainmaster results ${array.name}`, ...(array.tasks.failed ? [`trainmaster rerun ${array.name}`] : [])];
  const cancel = context.session.changes && !isIn("final", array.state) ? button("Cancel", "danger", () => cancelAsked(array, context)) : null;
  return [
    h("div", { class: "job-head" }, h("h1", {}, h("bdi", {}, array.name), stateCell(array.state))),
    h("dl", { class: "facts" }, facts.filter(([, what]) => what).map(([name, what]) => [h("dt", {}, name), h("dd", {}, what)])),
    h("p", { class: "row" }, rerunButton(array, context), cancel),
    h("ul", { class: "commands", "aria-label": "In a terminal" }, lines.map((text) => h("li", {}, command(text, context.say)))),
  ];
}

function cancelAsked(array, context) {
  confirm(context, {
    title: `Cancel ${array.name}?`,
    consequence: [`${array.tasks.running} tasks that run are stopped, ${array.tasks.waiting + array.tasks.held} never start. It cost ${usd(array.usd)} so far.`],
    label: "Cancel the array",
    kind: "danger",
    send: () => context.api.change("DELETE", `arrays/${encodeURIComponent(array.name)}`),
    job: array,
    route: "arrays",
    hasHappened: (seen) => isIn("final", seen.state),
    done: `${array.name} is being cancelled.`,
  });
}

function bestSaid(best, { metric, axes, context }) {
  if (!best) return null;
  const values = axes.map(({ name }) => `${name} ${best.values[name]}`).join(", ");
  return h("p", { class: "panel" }, "Best so far: ", h("a", { href: jobHref(best) }, `task ${best.index}`), ` with ${metric} `, h("b", {}, short(best.metrics[metric])), values && ` (${values})`, " ", command(`trainmaster show ${best.name}`, context.say));
}

function failures(tasks) {
  const classes = failedByClass(tasks);
  if (!classes.length) return null;
  return h("section", { class: "warning", "aria-label": "What failed" },
    h("h2", {}, "What failed"),
    h("ul", { class: "failed-classes" }, classes.map(({ code, tasks: failed }) =>
      h("li", {}, h("b", {}, `${failed.length}x ${code}`), ": ", failed.slice(0, 12).map((task, at) => [at ? ", " : "", task.is_job ? h("a", { href: jobHref(task) }, `task ${task.index}`) : `task ${task.index}`]), failed.length > 12 ? ` and ${failed.length - 12} more` : "", h("span", { class: "dim" }, ` – ${failed[0].why}`)))));
}

function choice(metrics, { metric, isLargest, setParams }) {
  const orders = [["false", "smallest"], ["true", "largest"]];
  const select = (key, options, chosen) => h("select", { "data-key": key, onchange: (event) => setParams({ [key]: event.target.value }, { load: false }) }, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return h("div", { class: "filters" },
    h("label", {}, "Metric", select("metric", metrics.map((name) => [name, name]), metric)),
    h("label", {}, "Best is the", select("largest", orders, String(isLargest))));
}

function tasksTable(values, metric, context) {
  const number = (text) => (text !== undefined && Number.isFinite(Number(text)) ? Number(text) : text);
  return new Table({
    caption: "Tasks",
    columns: [
      { key: "position", title: "#", cell: ({ index }) => String(index), sort: ({ index }) => index, number: true },
      { key: "job", title: "Task", cell: (task) => cutName(task.name, task.is_job ? { href: jobHref(task), tabindex: "-1" } : {}, task.is_job ? "a" : "span") },
      ...values.map((name) => ({ key: `value-${name}`, title: name, cell: (task) => task.values[name] ?? "", sort: (task) => number(task.values[name]), number: true })),
      ...(metric ? [{ key: "next", title: metric, cell: ({ metrics }) => (metric in metrics ? short(metrics[metric]) : ""), sort: ({ metrics }) => metrics[metric], number: true }] : []),
      { key: "state", title: "State", cell: ({ state }) => stateCell(state), sort: ({ state }) => state },
      { key: "cost", title: "Cost", cell: (task) => usd(task.cost_usd), sort: (task) => task.cost_usd, number: true },
      { key: "short", title: "Why", cell: ({ why }) => h("span", { title: why }, why) },
    ],
    keyOf: ({ index }) => index,
    open: (task) => task.is_job && context.navigate(jobHref(task)),
  });
}

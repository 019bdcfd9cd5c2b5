// The page Now: what each pool gives, your own jobs, and the queue in its order, each row with its reason.

import { pauseButton } from "../actions.js";
import { orMissing } from "../api.js";
import { command } from "../copied.js";
import { h, replace } from "../dom.js";
import { count, usd } from "../format.js";
import { WHERE, columns, cutName, hrefOf, nextCell, reachOf, stateCell } from "../job_cells.js";
import { DAY_SECONDS, STEP_SECONDS, poolStrip } from "../pool_strips.js";
import { Table } from "../table.js";
import { WaitDrawer } from "../wait_drawer.js";

const MONEY_MS = 60_000;
const HISTORY_MS = 300_000; // a day of a large pool costs the API hundreds of reads
const MOST_CURVES = 6; // pools whose last day is read
const LONG_QUEUE = 2000; // rows from which the queue is read less often: each reading sends all of it
const LONG_QUEUE_SECONDS = 20;
const SECONDS = 5;
let money = { at: -Infinity, team: "", usage: null };
let histories = { at: -Infinity, key: "", points: {} };

export const page = {
  title: "Now",
  refreshSeconds: SECONDS,
  pauseSeconds: (data) => (data.rows.length > LONG_QUEUE ? LONG_QUEUE_SECONDS : SECONDS),

  // The first rows are shown while the rest of a long queue comes.
  async load(api, params, signal, early) {
    const options = { signal };
    const read = (part) => api.local("queue", { now: new Date().toISOString(), part }, options);
    if (early) {
      const first = await read("first");
      if (first.is_partial) early({ ...first, me: null, usage: null, points: histories.points });
    }
    const [queue, me] = await Promise.all([read(null), api.me()]);
    const [usage, points] = await Promise.all([spent(api, me, options), lastDay(api, queue.pools, options)]);
    return { ...queue, me, usage, points };
  },

  render(root, data, context) {
    const parts = (context.state.parts ??= built(data, context));
    if (parts.elements.strips.parentElement !== root) replace(root, Object.values(parts.elements));
    const isPaused = data.rows.some((row) => row.code === "paused");
    replace(parts.pause, pauseButton(context, isPaused, data.rows.filter((row) => row.phase === "waiting").length));
    replace(parts.elements.strips, notes(data, isPaused), data.pools.map((pool) => poolStrip(pool, data.points[pool.name])));
    replace(parts.elements.yours, yours(data));
    parts.show(data, context);
  },
};

// An admin of many teams has no one month.
async function spent(api, me, options) {
  const team = me?.teams?.length === 1 ? me.teams[0].name : "";
  if (!team) return null;
  if (performance.now() - money.at < MONEY_MS && money.team === team) return money.usage;
  const usage = await api.get("usage", { team }, options).catch(() => null);
  if (usage) money = { at: performance.now(), team, usage };
  return usage;
}

// What was used of each pool over the last day, by its name; a strip is shown without it, too.
async function lastDay(api, pools, options) {
  const names = pools.slice(0, MOST_CURVES).map((pool) => pool.name);
  const key = JSON.stringify(names);
  if (performance.now() - histories.at < HISTORY_MS && histories.key === key) return histories.points;
  const from = `${new Date(Date.now() - DAY_SECONDS * 1000).toISOString().slice(0, 19)}Z`;
  const read = (pool) => orMissing(api.get("pools/history", { pool, from, step: STEP_SECONDS }, options)).catch(() => null);
  const answers = await Promise.all(names.map(read));
  histories = { at: performance.now(), key, points: Object.fromEntries(names.map((name, index) => [name, answers[index]?.points ?? []])) };
  return histories.points;
}

const POSITION = { key: "position", title: "#", hint: "Position in its queue", cell: ({ cells }) => (cells.position === "-" ? "" : cells.position), number: true };

function built(data, context) {
  const view = { rows: [], reach: 1, now: context.now, context };
  const next = { key: "next", title: "Ends or starts", hint: "A bar is what ran of the longest time; a dot is the likely start, its line reaches to 9 of 10 cases", cell: (row) => nextCell(row, view), sort: (row) => row.ends_by ?? row.starts_p50 };
  const table = new Table({
    caption: "The queue: running jobs, then waiting ones in their order",
    columns: columns(data.columns, [POSITION, "job", "team", WHERE, "state", "priority", next, "short"]),
    keyOf: (row) => row.key,
    open: (row) => { table.mark(row.key); drawer.open(row, view.context); },
  });
  const drawer = new WaitDrawer((key) => { table.mark(null); table.focusRow(key); });
  table.element.addEventListener("keydown", (event) => event.key === "Escape" && drawer.close());
  const find = h("input", { type: "search", "data-find": true, "data-key": "find", placeholder: "name, team, pool, reason", autocomplete: "off", value: context.params.find ?? "" });
  const counted = h("span", { class: "dim", role: "status" });
  const pause = h("span", {});
  const empty = h("div", { class: "panel first-use", hidden: true });
  const none = h("p", { class: "state", hidden: true });
  const filtered = () => {
    const wanted = find.value.trim().toLowerCase();
    const rows = wanted ? view.rows.filter((row) => row.searched.includes(wanted)) : view.rows;
    replace(counted, countSaid(rows.length, view.rows.length, { isSearch: wanted !== "", isPartial: view.isPartial }));
    none.hidden = rows.length > 0 || !view.rows.length;
    replace(none, view.isPartial ? "None of the jobs read so far matches; the rest of the queue is being read." : "No job in the queue matches.");
    table.element.hidden = rows.length === 0;
    table.update(rows);
  };
  find.addEventListener("input", filtered);
  const show = (latest, now) => {
    Object.assign(view, { rows: latest.rows, isPartial: latest.is_partial, now: now.now, reach: reachOf(latest.rows, now.now), context: now });
    empty.hidden = view.rows.length > 0;
    if (!view.rows.length) replace(empty, firstUse(latest, now));
    bar.hidden = !view.rows.length;
    filtered();
    drawer.update(view.rows, now);
  };
  const bar = h("div", { class: "row queue-bar" }, h("h2", {}, "Queue"), h("label", { class: "beside" }, "Find (/)", find), counted, h("span", { class: "grow" }), pause);
  const elements = { title: h("h1", {}, "Now"), strips: h("div", { class: "strips" }), yours: h("div", {}), bar, empty, none, table: table.element, drawer: drawer.element };
  return { elements, pause, show };
}

// Never "0 of 100" while more are unread.
export function countSaid(shown, all, { isSearch, isPartial }) {
  const jobs = all === 1 ? "1 job" : `${count(all)} jobs`;
  if (isPartial) return isSearch ? `${count(shown)} found so far; reading the rest of the queue` : `the first ${jobs}; reading the rest of the queue`;
  return isSearch ? `${count(shown)} of ${jobs}` : jobs;
}

// One command each, for whoever sees the queue for the first time.
function firstUse(data, { me }) {
  const hasPools = data.pools.length > 0;
  const title = hasPools ? "The queue is empty" : "There are no pools yet";
  const text = hasPools ? "Submit a training job, and it is here within seconds:" : me?.admin === false ? "An admin has to apply a policy with a pool." : "Apply a policy with a pool, and jobs can be submitted:";
  const line = hasPools ? "trainmaster submit request.json" : "trainmaster policy apply policy.yaml";
  return [h("h2", {}, title), h("p", { class: "dim" }, text), command(line), hasPools ? h("p", { class: "note" }, "Jobs that have ended are on the page ", h("a", { href: "#/jobs?state=ended" }, "Jobs"), ".") : null];
}

function notes(data, isPaused) {
  const found = [];
  if (isPaused) found.push("Starts and preemptions are paused by an admin. Running jobs continue.");
  if (!data.pools.length && data.rows.length) found.push("No pools: an admin has to apply a policy.");
  if (!data.has_starts && !data.is_partial) found.push("This stack is older than the page: it does not say when all jobs are likely to start.");
  return found.map((text) => h("p", { class: "warning" }, text));
}

function yours({ rows, me, usage, is_partial: isPartial }) {
  if (isPartial) return h("p", { class: "note" }, "Reading the rest of the queue.");
  if (!me) return h("p", { class: "note" }, "This stack is older than the page: it does not say who you are, so your own jobs are not picked out.");
  const mine = rows.filter((row) => row.submitted_by === me.principal);
  const running = mine.filter((row) => row.phase === "live").length;
  const month = usage?.total ? [" Your team spent ", h("b", {}, usd(usage.total.usd)), usage.budget ? ` of ${usd(usage.budget.limit)}` : "", " this month."] : "";
  if (!mine.length && !month) return null;
  const list = mine.slice(0, 8).map((row) => h("li", {}, cutName(row.name, { href: hrefOf(row) }, "a"), stateCell(row.cells.state)));
  return h("section", { class: "panel yours", "aria-label": "Yours" },
    h("p", {}, h("b", {}, `Yours: ${running} running, ${mine.length - running} waiting.`), month, " ", h("a", { href: "#/jobs?mine=true" }, "All of yours")),
    list.length ? h("ul", { class: "mine" }, list) : null);
}

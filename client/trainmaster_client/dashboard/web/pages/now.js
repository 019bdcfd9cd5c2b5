// The page Now: what each pool gives, who waits, your own jobs, and the queue in its order with its reasons.

import { pauseButton } from "../actions.js";
import { orMissing } from "../api.js";
import { h, replace } from "../dom.js";
import { clock, count, since, usd } from "../format.js";
import { LIVE, WAITING, keyOf, nameCell, positionCell, ranCell, startsCell, stateCell, textOf, whereCell, whyCell } from "../job_cells.js";
import { Table } from "../table.js";

const FIRST_JOBS = "100"; // shown while the rest of a long queue comes
const MONEY_MS = 60_000;
const ESTIMATES_MS = 15_000; // one costs the stack more than the queue itself
let starts = { at: -Infinity, found: null };
let money = { at: -Infinity, team: "", usage: null };

export const page = {
  title: "Now",
  refreshSeconds: 5,

  async load(api, params, signal, early) {
    const options = { signal };
    const pools = api.all("pools", {}, "pools", { ...options, limit: false });
    const onFirst = async (page) => {
      const first = await pools.catch(() => ({ pools: [] }));
      early({ pools: first.pools, jobs: page.jobs, estimates: null, me: null, usage: null, isPartial: true });
    };
    const [found, jobs, estimates, me] = await Promise.all([
      pools,
      api.all("jobs", {}, "jobs", { ...options, first: FIRST_JOBS, onFirst }),
      likelyStarts(api, options),
      api.me(),
    ]);
    return { pools: found.pools, jobs: jobs.jobs, estimates, me, usage: await spent(api, me, options) };
  },

  render(root, data, context) {
    const parts = (context.state.parts ??= built(root, context));
    if (parts.pools.parentElement !== root) replace(root, Object.values(parts.elements));
    const isPaused = data.jobs.some((job) => job.waiting?.code === "paused");
    replace(parts.pause, pauseButton(context, isPaused, waits(data)));
    replace(parts.pools, notes(data, isPaused), data.pools.map((pool) => poolPanel(pool, data, context.now)));
    replace(parts.yours, yours(data));
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

async function likelyStarts(api, options) {
  if (performance.now() - starts.at < ESTIMATES_MS) return starts.found;
  const found = byRank(await orMissing(api.get("estimates", {}, options)));
  starts = { at: performance.now(), found };
  return found;
}

function byRank(estimates) {
  if (!estimates) return null;
  return new Map((estimates.estimates ?? []).map((one) => [one.name ?? `${one.pool ?? ""} ${one.position}`, one]));
}

function estimateOf(job, estimates) {
  return estimates?.get(job.name ?? "") ?? estimates?.get(`${job.pool} ${job.position}`) ?? null;
}

function waits(data) {
  return data.jobs.filter((job) => WAITING.has(job.state)).length;
}

function built(root, context) {
  const find = h("input", { type: "search", "data-find": true, "data-key": "find", placeholder: "name, team, pool, reason", value: context.params.find ?? "" });
  const pools = h("div", { class: "pools" });
  const yours_ = h("div", {});
  const counted = h("span", { class: "dim", role: "status" });
  const pause = h("span", {});
  let latest = null;
  let estimates = null;
  const table = new Table({
    caption: "The queue: running jobs, then waiting ones in their order",
    columns: [
      { key: "position", title: "#", cell: positionCell, number: true },
      { key: "job", title: "Job", class: "name-cell", cell: nameCell, sort: (job) => job.name },
      { key: "team", title: "Team", cell: (job) => job.team, sort: (job) => job.team },
      { key: "state", title: "State", cell: (job) => stateCell(job.state), sort: (job) => job.state },
      { key: "where", title: "Where", cell: whereCell, sort: (job) => job.pool },
      { key: "priority", title: "Priority", cell: (job) => count(job.priority), sort: (job) => job.priority, number: true },
      { key: "ran", title: "Ran / left", cell: (job) => ranCell(job), sort: (job) => job.started_at ?? job.submitted_at },
      { key: "starts", title: "Starts p50 (p90)", cell: (job) => startsCell(job, estimateOf(job, estimates)) },
      { key: "why", title: "Why", cell: whyCell, class: "why" },
    ],
    keyOf,
    stampOf: (job) => JSON.stringify([job, estimateOf(job, estimates), Math.floor(Date.now() / 30_000)]),
    open: (job) => job.name && context.navigate(`#/jobs/${encodeURIComponent(job.name)}`),
  });
  const filtered = () => {
    const wanted = find.value.trim().toLowerCase();
    const rows = wanted ? latest.filter((job) => textOf(job).includes(wanted)) : latest;
    const all = latest.length === 1 ? "1 job" : `${count(latest.length)} jobs`;
    replace(counted, wanted ? `${count(rows.length)} of ${all}` : all);
    return table.update(rows);
  };
  find.addEventListener("input", filtered);
  const empty = h("p", { class: "state", hidden: true }, "The queue is empty. Ended jobs are on the page ", h("a", { href: "#/jobs?state=completed" }, "Jobs"), ".");
  const show = (data) => {
    [latest, estimates] = [data.jobs, data.estimates];
    empty.hidden = latest.length > 0;
    table.element.hidden = latest.length === 0;
    filtered();
  };
  const bar = h("div", { class: "row" }, h("h2", {}, "Queue"), h("label", { class: "beside" }, "Find (/) ", find), counted, h("span", { class: "grow" }), pause);
  const elements = { title: h("h1", {}, "Now"), pools, yours: yours_, bar, empty, table: table.element };
  return { elements, pools, yours: yours_, pause, show };
}

function notes(data, isPaused) {
  const found = [];
  if (isPaused) found.push("Starts and preemptions are paused by an admin. Running jobs continue.");
  for (const pool of data.pools) {
    if (pool.recount) found.push(`${pool.name}: nothing starts until the pool is recounted (${pool.recount.message}).`);
  }
  if (!data.pools.length) found.push("No pools: an admin has to apply a policy.");
  if (!data.estimates && !data.isPartial) found.push("This stack is older than the page: it does not say when all jobs are likely to start.");
  return found.map((text) => h("p", { class: "warning" }, text));
}

function poolPanel(pool, data, now) {
  const ends = data.jobs.filter((job) => job.pool === pool.name && LIVE.has(job.state) && job.ends_by).map((job) => job.ends_by);
  const next = ends.sort()[0];
  const waiting = pool.waiting
    ? `${count(pool.waiting)} wait${pool.waiting === 1 ? "s" : ""}, the oldest for ${since(pool.oldest_waiting_since, now)}`
    : "no jobs wait";
  return h("section", { class: "panel pool", "aria-label": `Pool ${pool.name}` },
    h("h2", {}, pool.name, " ", h("span", { class: "dim" }, waiting, next ? `, next certain end ${clock(next, now)}` : "")),
    bars(pool, "on-demand", pool.capacity),
    bars(pool, "spot", pool.spot_capacity),
    (pool.account_limits ?? []).map((one) =>
      h("p", { class: "note warn" }, `AWS allowed ${one.limit} ${one.capacity_type} ${one.instance_type}; the next try above that is at ${clock(one.until, now)}.`)),
    (pool.start_pauses ?? []).map((one) =>
      h("p", { class: "note warn" }, `Starts with ${one.role_arn ?? "a role of another team"} are paused since ${clock(one.since, now)}: AWS says ${one.message ?? one.code}. The next try is at ${clock(one.next_probe_at, now)} or later.`)),
  );
}

function bars(pool, kind, capacity) {
  return Object.entries(capacity ?? {}).map(([type, most]) => {
    const of = (part) => Number(pool[part]?.[kind]?.[type] ?? 0);
    const [used, warm, free] = [of("used"), of("warm"), of("free")];
    const whole = Math.max(1, Number(most), used + warm);
    const said = `${used} of ${most} used, ${warm} warm, ${free} free`;
    const share = (many) => `${(100 * many) / whole}%`;
    return h("div", { class: "gauge" },
      h("span", { class: "gauge-type" }, type, kind === "spot" ? " spot" : ""),
      h("span", { class: "gauge-bar", role: "img", "aria-label": said, vars: { "--used": share(used), "--warm": share(warm) } },
        h("span", { class: "gauge-used" }), h("span", { class: "gauge-warm" })),
      h("span", { class: "gauge-said" }, h("b", {}, `${used}/${most}`), ` used, ${warm} warm, ${free} free`),
    );
  });
}

function yours({ jobs, me, usage, isPartial }) {
  if (isPartial) return h("p", { class: "note" }, "Reading the rest of the queue.");
  if (!me) return h("p", { class: "note" }, "This stack is older than the page: it does not say who you are, so your own jobs are not picked out.");
  const mine = jobs.filter((job) => job.submitted_by === me.principal);
  const running = mine.filter((job) => LIVE.has(job.state)).length;
  const waiting = mine.length - running;
  const month = usage?.total ? [" This month your team spent ", h("b", {}, usd(usage.total.usd)), usage.budget ? ` of ${usd(usage.budget.limit)}` : "", "."] : "";
  const list = mine.slice(0, 12).map((job) => h("li", {}, nameCell(job), " ", stateCell(job.state), " ", h("span", { class: "dim" }, whyCell(job))));
  return h("section", { class: "panel", "aria-label": "Yours" },
    h("h2", {}, "Yours"),
    h("p", {}, h("b", {}, `${running} running, ${waiting} waiting.`), month, " ", h("a", { href: "#/jobs?mine=true" }, "All of yours")),
    list.length ? h("ul", { class: "mine" }, list) : null,
  );
}

// The page Jobs: jobs of any state by team, pool, name and time, in any order.

import { h, replace } from "../dom.js";
import { clock, count, instances, since, usd } from "../format.js";
import { FINAL, LIVE, STATES, keyOf, nameCell, stateCell, whyCell } from "../job_cells.js";
import { Table } from "../table.js";

const UNFINISHED = "";
const ENDED = "ended"; // all final states
const AGES = [["", "any time"], ["1", "1 day"], ["7", "7 days"], ["31", "31 days"]];
const DAY_MS = 86_400_000;

export const page = {
  title: "Jobs",
  refreshSeconds: 15,

  async load(api, params, signal) {
    const states = params.state === ENDED ? [...FINAL] : [params.state ?? UNFINISHED];
    const query = { team: params.team, pool: params.pool, mine: params.mine, name_prefix: params.prefix };
    const [pools, ...pages] = await Promise.all([
      api.all("pools", {}, "pools", { signal, limit: false }),
      ...states.map((state) => listed(api, { ...query, state }, signal)),
    ]);
    const jobs = pages.flatMap((one) => one.jobs);
    return { jobs: endedSince(jobs, params.days), pools: pools.pools, isOlder: pages.some((one) => one.isOlder) };
  },

  render(root, data, context) {
    const parts = (context.state.parts ??= built(context));
    if (parts.table.element.parentElement !== root) replace(root, parts.elements);
    parts.offer(data);
    const many = data.jobs.length;
    replace(parts.counted, many === 1 ? "1 job" : `${count(many)} jobs`, data.isOlder ? ". This stack is older: name and owner are searched among the jobs that it lists." : "");
    parts.empty.hidden = many > 0;
    parts.table.element.hidden = many === 0;
    parts.table.update(data.jobs);
  },
};

// A stack that does not know the new filters says so by a 400: then they are applied here.
async function listed(api, query, signal) {
  const { mine, name_prefix: prefix, ...old } = query;
  try {
    return { jobs: (await api.all("jobs", query, "jobs", { signal })).jobs, isOlder: false };
  } catch (trouble) {
    if (trouble.status !== 400 || !(mine || prefix)) throw trouble;
    const all = await api.all("jobs", old, "jobs", { signal });
    return { jobs: all.jobs.filter((job) => job.name && job.name.startsWith(prefix ?? "")), isOlder: true };
  }
}

function endedSince(jobs, days) {
  if (!days) return jobs;
  const from = Date.now() - Number(days) * DAY_MS;
  return jobs.filter((job) => new Date(job.ended_at ?? job.started_at ?? job.submitted_at) >= from);
}

function built(context) {
  const counted = h("span", { class: "dim", role: "status" });
  const empty = h("p", { class: "state", hidden: true }, "No job matches.");
  const [key, order] = (context.params.sort ?? "").split(" ");
  const table = new Table({
    caption: "Jobs",
    columns: [
      { key: "job", title: "Job", class: "name-cell", cell: nameCell, sort: (job) => job.name },
      { key: "team", title: "Team", cell: (job) => job.team, sort: (job) => job.team },
      { key: "pool", title: "Pool", cell: (job) => job.pool, sort: (job) => job.pool },
      { key: "state", title: "State", cell: (job) => stateCell(job.state), sort: (job) => job.state },
      { key: "instances", title: "Instances", cell: (job) => instances(job.instances, job.capacity_type) },
      { key: "priority", title: "Priority", cell: (job) => count(job.priority), sort: (job) => job.priority, number: true },
      { key: "submitted", title: "Submitted", cell: (job) => clock(job.submitted_at), sort: (job) => job.submitted_at },
      { key: "ended", title: "Ended, or since", cell: endCell, sort: (job) => job.ended_at ?? job.started_at },
      { key: "cost", title: "Cost", cell: (job) => (job.cost_usd === undefined ? "" : usd(job.cost_usd)), sort: (job) => Number(job.cost_usd), number: true },
      { key: "why", title: "Why", cell: whyCell, class: "why" },
    ],
    keyOf,
    stampOf: (job) => JSON.stringify([job, LIVE.has(job.state) ? Math.floor(Date.now() / 60_000) : 0]),
    open: (job) => job.name && context.navigate(`#/jobs/${encodeURIComponent(job.name)}`),
    sort: key ? { key, descending: order === "down" } : null,
    onsort: (sort) => context.setParams({ sort: sort ? `${sort.key}${sort.descending ? " down" : ""}` : "" }, { load: false }),
  });
  const { bar, offer } = filters(context);
  return { table, counted, empty, offer, elements: [h("h1", {}, "Jobs"), bar, h("p", {}, counted), empty, table.element] };
}

function endCell(job) {
  if (job.ended_at) return clock(job.ended_at);
  return LIVE.has(job.state) && job.started_at ? `runs ${since(job.started_at)}` : "";
}

function filters(context) {
  const states = [[UNFINISHED, "not ended"], [ENDED, "ended"], ...STATES.map((one) => [one, one])];
  const choice = (name, label, options) => {
    const select = h("select", { "data-key": name, onchange: () => context.setParams({ [name]: select.value }) });
    fill(select, options, context.params[name] ?? "");
    return { select, element: h("label", {}, label, select) };
  };
  const [state, team, pool, days] = [choice("state", "State", states), choice("team", "Team", [["", "all"]]), choice("pool", "Pool", [["", "all"]]), choice("days", "Since", AGES)];
  const prefix = h("input", { type: "search", "data-find": true, "data-key": "prefix", value: context.params.prefix ?? "", onchange: () => context.setParams({ prefix: prefix.value.trim() }) });
  const mine = h("input", { type: "checkbox", "data-key": "mine", checked: context.params.mine === "true", onchange: () => context.setParams({ mine: mine.checked ? "true" : "" }) });
  const bar = h("div", { class: "filters", role: "search", "aria-label": "Which jobs" },
    state.element, team.element, pool.element, days.element,
    h("label", {}, "Name begins with (/)", prefix),
    h("label", { class: "check" }, mine, "mine"),
  );
  const offer = (data) => {
    const teams = new Set([...data.pools.flatMap((one) => one.teams.map((team_) => team_.name)), ...data.jobs.map((job) => job.team), context.params.team]);
    fill(team.select, [["", "all"], ...[...teams].filter(Boolean).sort().map((one) => [one, one])], team.select.value || context.params.team || "");
    fill(pool.select, [["", "all"], ...data.pools.map((one) => [one.name, one.name])], pool.select.value || context.params.pool || "");
  };
  return { bar, offer };
}

function fill(select, options, value) {
  const stamp = JSON.stringify(options);
  if (select.dataset.stamp === stamp) return;
  select.dataset.stamp = stamp;
  replace(select, options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
}

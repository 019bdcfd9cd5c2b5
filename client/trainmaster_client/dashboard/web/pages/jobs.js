// The page Jobs: jobs of any state by team, pool, name and time, in any order.

import { h, replace } from "../dom.js";
import { clock, count, usd } from "../format.js";
import { WHERE, allStates, columns, hrefOf, statesOf } from "../job_cells.js";
import { Table } from "../table.js";

const UNFINISHED = "";
const ENDED = "ended"; // all final states
const AGES = [["", "any time"], ["1", "1 day"], ["7", "7 days"], ["31", "31 days"]];
const DAY_MS = 86_400_000;

export const page = {
  title: "Jobs",
  refreshSeconds: 15,

  async load(api, params, signal) {
    const states = params.state === ENDED ? statesOf("final") : [params.state ?? UNFINISHED];
    const query = { team: params.team, pool: params.pool, mine: params.mine, name_prefix: params.prefix };
    const pages = await Promise.all(states.map((state) => listed(api, { ...query, state }, signal)));
    const rows = pages.flatMap((one) => one.rows);
    return { rows: endedSince(rows, params.days), columns: pages[0].columns, pools: pages[0].pools, teams: pages[0].teams, isOlder: pages.some((one) => one.isOlder) };
  },

  render(root, data, context) {
    const parts = (context.state.parts ??= built(data, context));
    if (parts.table.element.parentElement !== root) replace(root, parts.elements);
    parts.offer(data);
    const many = data.rows.length;
    replace(parts.counted, many === 1 ? "1 job" : `${count(many)} jobs`, data.isOlder ? ". This stack is older: name and owner are searched among the jobs that it lists." : "");
    parts.empty.hidden = many > 0;
    parts.table.element.hidden = many === 0;
    parts.table.update(data.rows);
  },
};

// A stack that does not know the new filters says so by a 400: then they are applied here.
async function listed(api, query, signal) {
  const { mine, name_prefix: prefix, ...old } = query;
  const read = (given) => api.local("queue", { ...given, now: new Date().toISOString() }, { signal });
  try {
    return { ...(await read(query)), isOlder: false };
  } catch (trouble) {
    if (trouble.status !== 400 || !(mine || prefix)) throw trouble;
    const all = await read(old);
    return { ...all, rows: all.rows.filter((row) => row.name.startsWith(prefix ?? "") && row.name), isOlder: true };
  }
}

function endedSince(rows, days) {
  if (!days) return rows;
  const from = Date.now() - Number(days) * DAY_MS;
  return rows.filter((row) => new Date(row.ended_at ?? row.started_at ?? row.submitted_at) >= from);
}

function built(data, context) {
  const counted = h("span", { class: "dim", role: "status" });
  const empty = h("p", { class: "state", hidden: true }, "No job matches.");
  const [key, order] = (context.params.sort ?? "").split(" ");
  const table = new Table({
    caption: "Jobs",
    columns: columns(data.columns, [
      ...["job", "team", WHERE, "state", "priority"],
      { key: "submitted", title: "Submitted", cell: (row) => clock(row.submitted_at), sort: (row) => row.submitted_at },
      { key: "ended", title: "Ended, or since", cell: endCell, sort: (row) => row.ended_at ?? row.started_at },
      { key: "cost", title: "Cost", cell: (row) => (row.name ? usd(row.cost_usd) : ""), sort: (row) => row.cost_usd, number: true },
      "short",
    ]),
    keyOf: (row) => row.key,
    open: (row) => hrefOf(row) && context.navigate(hrefOf(row)),
    sort: key ? { key, descending: order === "down" } : null,
    onsort: (sort) => context.setParams({ sort: sort ? `${sort.key}${sort.descending ? " down" : ""}` : "" }, { load: false }),
  });
  const { bar, offer } = filters(context);
  return { table, counted, empty, offer, elements: [h("h1", {}, "Jobs"), bar, h("p", {}, counted), empty, table.element] };
}

function endCell(row) {
  if (row.ended_at) return clock(row.ended_at);
  return row.phase === "live" && row.started_at ? `runs ${row.cells.ran}` : "";
}

function filters(context) {
  const states = [[UNFINISHED, "not ended"], [ENDED, "ended"], ...allStates().map((one) => [one, one])];
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
    const teams = new Set([...data.teams, ...data.rows.map((row) => row.cells.team), context.params.team]);
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

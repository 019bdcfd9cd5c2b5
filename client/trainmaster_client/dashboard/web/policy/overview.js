// The policy in force as tables: each pool with its instances and order, teams by pool, changes by the calendar.

import { h } from "../dom.js";
import { localTimes, usd } from "../format.js";
import { plainTable as table } from "../plain_table.js";
import { said } from "./rules.js";

const SHOWN = new Set(["name", "capacity", "spot_capacity", "quotas", "calendar"]);

export function policyOverview({ pools = [], teams = [] }) {
  if (!pools.length) return h("p", { class: "state" }, "It has no pools: nothing can run.");
  return [
    h("h2", {}, "Pools"),
    table("Pools", ["Pool", "Instances", "Spot", "Otherwise than by default"], pools.map((pool) => [pool.name, countsText(pool.capacity), countsText(pool.spot_capacity), settings(pool)])),
    h("h2", {}, "Teams"),
    teams.length ? teamsTable(teams, pools) : h("p", { class: "state" }, "It names no teams: everybody is in team default."),
    calendar(pools),
  ];
}

// A row a team, a column a pool: the instances that it may count on, and what it may borrow beside them.
function teamsTable(teams, pools) {
  const withQuotas = pools.filter((pool) => Object.keys(pool.quotas ?? {}).length);
  const heads = ["Team", "Budget a month", "Highest priority", ...withQuotas.map((pool) => `Quota in ${pool.name}`)];
  return table("Teams", heads, teams.map((team) => [
    team.name,
    team.budget ? `${usd(team.budget.usd_per_month)}${team.budget.at_limit === "spot" ? ", then spot" : ""}` : "no bound",
    team.max_priority ?? 1000,
    ...withQuotas.map((pool) => quotaText(pool.quotas[team.name])),
  ]));
}

// `2`, or {nominal: {type: 1}, borrowing_limit: {type: 1}}; no borrowing_limit: whatever is idle.
export function quotaText(quota) {
  if (quota === undefined) return "none";
  if (typeof quota !== "object" || quota === null) return said(quota);
  const { nominal, borrowing_limit: limit } = quota;
  const borrows = limit === undefined || limit === null ? "borrows what is idle" : `borrows ${countsText(limit)}`;
  return `${countsText(nominal) || "none"}; ${borrows}`;
}

export function countsText(counts) {
  if (typeof counts !== "object" || counts === null) return counts === undefined || counts === null ? "" : String(counts);
  return Object.entries(counts).map(([type, many]) => `${many}x ${type}`).join(", ");
}

function settings(pool) {
  return Object.entries(pool).filter(([key]) => !SHOWN.has(key)).map(([key, value]) => `${key.replaceAll("_", " ")}: ${said(value)}`).join("; ") || "all by default";
}

function calendar(pools) {
  const rows = pools.flatMap((pool) => (pool.calendar ?? []).map((entry) => {
    const { every, timezone, from, to, capacity, spot_capacity: spot, ...rest } = entry;
    const when = every ? `${every}${timezone ? ` (${timezone})` : ""}` : `${localTimes(from)} to ${localTimes(to)}`;
    return [pool.name, when, countsText(capacity), countsText(spot), said(rest) || "–"];
  }));
  return rows.length ? [h("h2", {}, "Calendar"), table("Calendar", ["Pool", "When", "Instances", "Spot", "And"], rows)] : null;
}

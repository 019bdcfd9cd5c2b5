// What the money page reads: usage by group and by day, budgets, and the use of the pools by hour.

import { Trouble, orMissing } from "../api.js";
import { DAY, HOUR } from "../timeline/windows.js";
import { monthOf, sharesOf } from "./figures.js";

export const GROUPINGS = { team: "team", user: "user", model_name: "model", day: "day", job: "job" };
const WEEKS = 4;
const MOST_BUDGETS = 24;
const SLOW_MS = 10 * 60_000; // budgets and weeks change slowly, and cost more to read
const kept = new Map();

// `{month, groupBy, team, teams, isAdmin, groups, total, isCut, days, budgets, weeks, isOlder}`.
export async function readMoney(api, params, signal) {
  const now = Date.now();
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(params.month ?? "") ? params.month : monthOf(now);
  const groupBy = params.by in GROUPINGS ? params.by : "team";
  const me = await orMissing(api.get("me", {}, { signal }));
  const isAdmin = Boolean(me?.admin);
  const teams = (me?.teams ?? []).map((one) => one.name);
  const team = params.team || (isAdmin ? "*" : teams[0] || null);
  const asked = { month, groupBy, team };
  const usage = await readUsage(api, asked, signal);
  const [budgets, weeks] = await Promise.all([
    slowly(`budgets ${month} ${team}`, () => readBudgets(api, budgetTeams(usage, asked, teams), month, signal)),
    slowly("weeks", () => readWeeks(api, now, signal)),
  ]);
  return { ...asked, teams, isAdmin, ...usage, budgets, weeks };
}

async function readUsage(api, { month, groupBy, team }, signal) {
  const grouped = (by) => api.all("usage", { team, month, group_by: by }, "groups", { signal });
  try {
    const [chosen, days] = await Promise.all([grouped(groupBy), slowly(`days ${month} ${team}`, () => grouped("day"))]);
    const { groups, total, truncated, running, unused_plan: unusedPlans = [] } = chosen;
    return { groups, total, running: running ?? null, isCut: Boolean(truncated), days: days.groups, unusedPlans, isOlder: false };
  } catch (trouble) {
    if (!isUnknownParameter(trouble)) throw trouble;
  }
  const old = await api.all("usage", { month, team: team === "*" ? null : team }, "jobs", { signal });
  const groups = old.jobs.map((one) => ({ ...one, key: one.name }));
  return { groups, total: old.total, running: old.running ?? null, days: [], groupBy: "job", isOlder: true };
}

const isUnknownParameter = (trouble) =>
  trouble instanceof Trouble && trouble.status === 400 && trouble.errors.some((one) => /group_by/.test(one.field ?? ""));

function budgetTeams({ groups, groupBy: answered }, { groupBy, team }, teams) {
  if (team && team !== "*") return [team];
  const seen = groupBy === "team" && !answered ? groups.map((one) => one.key).filter(Boolean) : [];
  return [...new Set([...teams, ...seen])].slice(0, MOST_BUDGETS);
}

async function readBudgets(api, teams, month, signal) {
  const found = await Promise.all(
    teams.map(async (team) => {
      const answer = await orMissing(api.get("usage", { team, month }, { signal }));
      return answer?.budget ? { team, ...answer.budget } : null;
    }),
  );
  return { read: teams.length, budgets: found.filter(Boolean) };
}

async function readWeeks(api, now, signal) {
  const { pools } = await api.all("pools", {}, "pools", { signal });
  const [first, last] = [Math.floor(now / HOUR) * HOUR - WEEKS * 7 * DAY, now].map((instant) => new Date(instant).toISOString());
  return Promise.all(
    pools.map(async (pool) => {
      const { name } = pool;
      const query = { pool: name, from: first, to: last, step: 3600 };
      const answer = await orMissing(api.get("pools/history", query, { signal }));
      return { pool: name, points: answer ? recorded(answer) : null, shares: sharesOf(pool) };
    }),
  );
}

// Of what was before the recording began nothing is known: it is no free hour.
function recorded({ points, since }) {
  const begins = Date.parse(since ?? "");
  return (points ?? []).filter((one) => Date.parse(one.at) >= begins);
}

async function slowly(key, read) {
  const before = kept.get(key);
  if (before && performance.now() - before.at < SLOW_MS) return before.found;
  const found = await read();
  kept.set(key, { at: performance.now(), found });
  return found;
}

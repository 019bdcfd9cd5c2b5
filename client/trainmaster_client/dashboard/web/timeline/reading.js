// What the timeline reads: its pools, their attempts, and when waiting jobs are expected to start.

import { orMissing } from "../api.js";
import { AHEAD, DAY, HOUR, covers, readWindow, windowEndingNow } from "./windows.js";

const USUAL_HOURS = 24;
const USUAL_AHEAD = 100 * AHEAD; // percent of the window that are to come
const MOST_AHEAD = 75;
const POOLS_AT_ONCE = 6;
const MOST_JOBS = 100; // whose widths, ends and parents are known

// Answers that a next look within so many seconds may do with: days change slowly and cost more. Ages are of
// performance.now(), which no change of the clock moves.
const AGES = [[6 * HOUR, 4], [2 * DAY, 20], [Infinity, 60]];
const kept = { key: "", read: null, at: -Infinity, pools: [] };

// Of the page's parameters: `span` in hours, `to` where it does not end now, `ahead` in percent.
export function windowOf(params, now) {
  const hours = Number(params.span);
  const span = (hours > 0 ? hours : USUAL_HOURS) * HOUR;
  const to = Date.parse(params.to ?? "");
  const ahead = Number(params.ahead ?? USUAL_AHEAD);
  const percent = Number.isFinite(ahead) ? Math.min(Math.max(ahead, 0), MOST_AHEAD) : USUAL_AHEAD;
  if (!Number.isFinite(to)) return windowEndingNow(now, span, percent / 100);
  const width = windowEndingNow(now, span);
  return { from: to - (width.to - width.from), to };
}

const secondOf = (instant) => `${new Date(instant).toISOString().slice(0, 19)}Z`;

export function paramsOf({ from, to }, now) {
  const span = String(Math.round(((to - from) / HOUR) * 100) / 100);
  if (to < now) return { span, to: secondOf(to), ahead: null };
  return { span, to: null, ahead: String(Math.round((100 * (to - now)) / (to - from))) };
}

// `{names, teams, chosen, answers: [{pool, timeline, estimates, jobs}], read}`; `timeline` is null on a stack that has none.
export async function readPools(api, params, signal) {
  const now = Date.now();
  const { pools } = await api.all("pools", {}, "pools", { signal });
  const names = pools.map((one) => one.name);
  const asked = params.pool && params.pool !== "*" ? [params.pool] : names;
  const chosen = !params.pool && names.length > POOLS_AT_ONCE ? names.slice(0, 1) : asked;
  const read = await readOnce(api, chosen, windowOf(params, now), { now, signal });
  const teams = new Set(pools.flatMap((one) => (one.teams ?? []).map(({ name }) => name)));
  return { names, teams: [...teams].sort(), chosen, answers: read.pools, read: read.read };
}

async function readOnce(api, chosen, window, { now, signal }) {
  const key = JSON.stringify(chosen);
  const age = AGES.find(([span]) => window.to - window.from <= span)[1];
  if (kept.key === key && covers(kept.read, window, now) && performance.now() - kept.at < age * 1000) return kept;
  const read = readWindow(window, now);
  const from = secondOf(read.from);
  const to = read.to < now ? secondOf(read.to) : null; // up to now by the API's clock, not by this one
  const pools = await Promise.all(
    chosen.map(async (pool) => {
      const [timeline, estimates, listed] = await Promise.all([
        orMissing(api.all("timeline", { pool, from, to }, "attempts", { signal })),
        orMissing(api.get("estimates", { pool }, { signal })),
        orMissing(api.get("jobs", { pool, limit: MOST_JOBS }, { signal })),
      ]);
      return { pool, timeline, estimates: estimates?.estimates ?? [], jobs: listed?.jobs ?? [] };
    }),
  );
  return Object.assign(kept, { key, read, at: performance.now(), pools });
}

// What the feed reads: its pages once, then only what came since; each event is kept once.

import { Trouble, TroubleKind } from "../api.js";
import { HOUR } from "../timeline/windows.js";
import { MOST_KEPT, joined } from "./feed.js";

export const SPANS = { 1: "1 hour", 24: "24 hours", 168: "7 days", 336: "14 days" };
const MOST_PAGES = 5; // of about 1,000 events each, the oldest first
const SHORTEST_MS = 5 * 60_000;
const OVERLAP_MS = 120_000; // events of one instant come in any order, and clocks differ
const LOOKS_ANEW_MS = 10 * 60_000; // what was written late is then there too
let kept = null;

// `{events, hasMore, isMissing, fresh}`: newest first; `fresh`: keys of those that the last look brought.
export async function readEvents(api, params, signal) {
  const now = Date.now();
  const hours = params.since in SPANS ? Number(params.since) : 24;
  const asked = { team: params.team, kind: params.kind };
  const key = JSON.stringify([hours, asked]);
  const isKnown = kept?.key === key && performance.now() - kept.at < LOOKS_ANEW_MS;
  const oldest = now - hours * HOUR;
  const since = isKnown ? Math.max(kept.newest - OVERLAP_MS, oldest) : oldest;
  try {
    const read = await newestSince(api, { asked, since, now, signal });
    const before = isKnown ? kept.events.filter((one) => Date.parse(one.at) >= oldest) : [];
    const events = joined(before, read.events);
    const known = new Set(before.map((one) => one.at + one.kind + one.job));
    const fresh = isKnown ? new Set(events.filter((one) => !known.has(one.at + one.kind + one.job))) : new Set();
    kept = {
      key,
      at: isKnown ? kept.at : performance.now(),
      newest: Math.max(...events.slice(0, 1).map((one) => Date.parse(one.at)), oldest),
      events,
      hasMore: isKnown ? kept.hasMore : read.hasMore,
    };
    return { events, fresh, hasMore: kept.hasMore || events.length >= MOST_KEPT, isMissing: false };
  } catch (trouble) {
    if (!(trouble instanceof Trouble) || trouble.kind !== TroubleKind.MISSING) throw trouble;
    return { events: [], fresh: new Set(), hasMore: false, isMissing: true };
  }
}

// Where more happened than is read, the latest of it: a shorter time is asked for.
async function newestSince(api, { asked, since, now, signal }) {
  let span = now - since;
  for (;;) {
    const read = await pagesSince(api, { ...asked, since: new Date(now - span).toISOString() }, signal);
    const ats = [read.events[0], read.events.at(-1)].map((one) => Date.parse(one?.at ?? ""));
    const isNewestFirst = ats[0] > ats[1];
    if (!read.hasMore || isNewestFirst || span <= SHORTEST_MS) return { ...read, hasMore: read.hasMore || span < now - since };
    const covered = Number.isFinite(ats[1]) ? ats[1] - (now - span) : 0; // as many are in as much time of its end
    span = Math.max(Math.min(span / 2, covered), SHORTEST_MS);
  }
}

async function pagesSince(api, query, signal) {
  const events = [];
  let token = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await api.get("events", { ...query, next_token: token }, { signal });
    events.push(...(answer.events ?? []));
    token = answer.next_token ?? null;
    if (!token) return { events, hasMore: false };
  }
  return { events, hasMore: true };
}

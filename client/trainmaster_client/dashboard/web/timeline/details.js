// What is said of an attempt or a warm pool: in words, for those who point at it and those who do not see it.

import { clock, duration, instances, middle } from "../format.js";
import { endKind } from "./tracks.js";

export const OTHERS = "(other team's)";

export const nameOf = (attempt) => attempt.job ?? OTHERS;

const ENDS = {
  live: "runs",
  completed: "completed",
  preempted: "preempted",
  stopped: "stopped",
  failed: "failed",
};

// `{title, facts: [[name, text]], job}`; `job` is null where there is no page of it for this reader.
export function barDetails(bar, now) {
  return bar.warm ? warmDetails(bar) : attemptDetails(bar.attempt, now);
}

function attemptDetails(attempt, now) {
  const { from, trained, to, isLive } = attempt;
  const seconds = (ms) => duration(ms / 1000);
  const facts = [
    ["team", attempt.team],
    ["instances", instances(attempt.instances, attempt.capacityType)],
    ["from", `${clock(new Date(from))} to ${isLive ? "now" : clock(new Date(to))}, ${seconds(to - from)}`],
    ["start-up", startUp(attempt, now)],
    ["trained", trained === null ? "not yet" : seconds(to - Math.min(trained, to))],
    ["end", endSaid(attempt)],
  ];
  if (!isLive) facts.push(["lost", lossSaid(attempt)]);
  return { title: `${nameOf(attempt)}, attempt ${attempt.attempt}`, facts, job: attempt.job };
}

function startUp({ from, trained, isLive, isWarmStart, to }, now) {
  const from_warm = isWarmStart ? ", on a warm pool" : "";
  if (trained !== null) return duration((trained - from) / 1000) + from_warm;
  return (isLive ? `for ${duration((now - from) / 1000)} so far` : `${duration((to - from) / 1000)}, never trained`) + from_warm;
}

export function endSaid(attempt) {
  const kind = endKind(attempt);
  if (kind === "preempted") return `preempted by ${partySaid(attempt.preemptedBy, attempt.preemptedByTeam)}`;
  if (kind === "live" && attempt.preemptedByTeam) {
    return `is being preempted by ${partySaid(attempt.preemptedBy, attempt.preemptedByTeam)}`;
  }
  return kind === "failed" || kind === "stopped" ? `${ENDS[kind]}: ${attempt.end ?? "unknown"}` : ENDS[kind];
}

// A job of another team has no name, only its team.
function partySaid(job, team) {
  return job ?? (team ? `a job of team ${team}` : "a job of another team");
}

export function lossSaid({ lostSeconds, unknownSeconds }) {
  if (lostSeconds === null) return "not known";
  if (unknownSeconds > 0) {
    return `${duration(lostSeconds)} to ${duration(lostSeconds + unknownSeconds)} of training: no checkpoint was seen`;
  }
  return lostSeconds > 0 ? `${duration(lostSeconds)} of training` : "nothing";
}

function warmDetails({ warm, from, to }) {
  const facts = [
    ["instances", instances({ [warm.instance_type]: warm.instances })],
    ["from", `${clock(new Date(from))} to ${warm.isLive ? "now" : clock(new Date(to))}, ${duration((to - from) / 1000)}`],
    ["reused by", warm.reused_by || warm.reused_by_team ? partySaid(warm.reused_by, warm.reused_by_team) : "none"],
    ...(warm.because ? [["given up as", warm.because]] : []),
  ];
  return { title: "Warm pool: kept for the next job", facts, job: null };
}

// Expected starts that a track shows: those that wait for its pool, the soonest first. `jobs`: by name, as far as the
// API listed them: how many instances of which type they take.
export function ghostsOf(estimates, jobs = new Map(), most = 6) {
  const found = [];
  for (const one of estimates ?? []) {
    const from = Date.parse(one.p50 ?? "");
    if (!Number.isFinite(from)) continue;
    const to = Date.parse(one.p90 ?? "");
    const { instances: takes = null, capacity_type: capacityType = "on-demand" } = jobs.get(one.name) ?? {};
    found.push({ job: one.name ?? null, takes, capacityType, name: middle(one.name ?? OTHERS, 32), from, to: Number.isFinite(to) ? Math.max(to, from) : from });
  }
  return found.sort((one, other) => one.from - other.from).slice(0, most);
}

// Where everything on the timeline lies: attempts packed into rows of instances, capacity as steps. Data in, data out.

const INSTANT = (text) => (text ? Date.parse(text) : null);
const CLOCKS_DIFFER = 60_000; // of SageMaker, which says when an attempt ended, and of the queue, which claims
const LAST_CHANGE_SHOWN = 86_400_000; // how long the last change that is known is drawn, a day
const CAPACITY_OF = { "on-demand": "capacity", spot: "spot_capacity", plan: "plan_capacity" }; // by capacity type
const BY_START = (one, other) => one.from - other.from || one.to - other.to;

// What `GET /timeline` answers with instants in milliseconds; what cannot be read is counted, not drawn.
export function readTimeline(answer, now) {
  const read = { attempts: [], warm: [], capacity: [], ahead: [], since: INSTANT(answer.since), unread: 0 };
  for (const one of answer.attempts ?? []) {
    const attempt = readAttempt(one, now);
    if (attempt) read.attempts.push(attempt);
    else read.unread += 1;
  }
  for (const one of answer.warm ?? []) {
    const from = INSTANT(one.since);
    const to = Math.max(INSTANT(one.until) ?? now, from);
    if (Number.isFinite(from)) read.warm.push({ ...one, from, to, isLive: !one.until });
    else read.unread += 1;
  }
  for (const one of answer.capacity ?? []) {
    const at = INSTANT(one.at);
    if (Number.isFinite(at)) read.capacity.push({ ...one, at });
    else read.unread += 1;
  }
  for (const one of answer.ahead ?? []) {
    const at = INSTANT(one.at);
    if (at > now) read.ahead.push({ ...one, at });
  }
  return read;
}

function readAttempt(one, now) {
  const from = INSTANT(one.claimed_at);
  const ended = INSTANT(one.ended_at);
  if (!Number.isFinite(from) || (ended !== null && !Number.isFinite(ended))) return null;
  const trained = INSTANT(one.training_since);
  return {
    job: one.job ?? null,
    attempt: one.attempt ?? 0,
    team: one.team ?? "",
    pool: one.pool ?? "",
    instances: one.instances ?? {},
    capacityType: one.capacity_type ?? "on-demand",
    from,
    trained: Number.isFinite(trained) ? trained : null,
    to: Math.max(ended ?? now, from),
    isLive: ended === null,
    end: one.end ?? null,
    preemptedBy: one.preempted_by ?? null,
    preemptedByTeam: one.preempted_by_team ?? null,
    isWarmStart: Boolean(one.warm_start),
    lostSeconds: one.lost_seconds ?? null,
    unknownSeconds: one.unknown_seconds ?? 0,
  };
}

// What an attempt's end is drawn as.
export function endKind(attempt) {
  if (attempt.isLive) return "live";
  if (attempt.end === "preemption") return "preempted";
  if (attempt.end === "completed") return "completed";
  return STOPS.has(attempt.end) ? "stopped" : "failed";
}

const STOPS = new Set([
  "stopped-by-user", "stopped-outside", "max-runtime", "max-wait", "idle", "idle-requeue",
  "underused", "underused-requeue", "spot-fallback", "restored", "shrink", "grow",
  "max-runtime-at-width", "loss-not-finite", "loss-diverged", "loss-plateau",
]);

// One track for each pool, instance type and capacity type, in the order of their names; a row of it is an instance.
//
// @returns {{pool, type, capacityType, rows, bars, warm, steps}[]} `rows`: how many there are, the most of what the
// capacity was and what was in use; bars have `first` and `count` of the rows that they take.
export function packedTracks(timeline, now) {
  const tracks = new Map();
  const track = (pool, type, capacityType) => {
    const key = JSON.stringify([pool, type, capacityType]);
    if (!tracks.has(key)) tracks.set(key, { pool, type, capacityType, items: [], steps: [] });
    return tracks.get(key);
  };
  for (const step of [...timeline.capacity, ...timeline.ahead.filter((one) => one.plan_capacity)]) {
    for (const [capacityType, field] of Object.entries(CAPACITY_OF)) {
      for (const type of Object.keys(step[field] ?? {})) track(step.pool, type, capacityType);
    }
  }
  for (const attempt of timeline.attempts) {
    for (const [type, count] of Object.entries(attempt.instances)) {
      track(attempt.pool, type, attempt.capacityType).items.push({ attempt, from: attempt.from, to: attempt.to, count });
    }
  }
  const claims = claimsByJob(timeline.attempts);
  for (const warm of timeline.warm) {
    const to = reusedAt(warm, claims) ?? warm.to;
    track(warm.pool, warm.instance_type, "on-demand").items.push({ warm, from: warm.from, to, count: warm.instances });
  }
  const found = [...tracks.values()].sort(
    (one, other) => order(one.pool, other.pool) || order(one.type, other.type) || order(one.capacityType, other.capacityType),
  );
  return found.map((one) => {
    const steps = capacitySteps(timeline.capacity, one, now);
    return packed(one, [...steps, ...stepsAhead(timeline.ahead, one, steps.at(-1)?.capacity ?? 0, now)]);
  });
}

const order = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

function claimsByJob(attempts) {
  const found = new Map();
  for (const one of attempts) {
    if (!one.job || !one.isWarmStart) continue;
    if (!found.has(one.job)) found.set(one.job, []);
    found.get(one.job).push(one.from);
  }
  return found;
}

// The instances of a warm pool are the job's from its claim on, whenever AWS says that they were reused.
function reusedAt(warm, claims) {
  return claims.get(warm.reused_by)?.find((at) => at >= warm.from && at <= warm.to) ?? null;
}

function capacitySteps(changes, { pool, type, capacityType }, now) {
  const field = CAPACITY_OF[capacityType];
  const own = changes.filter((one) => one.pool === pool).sort((one, other) => one.at - other.at);
  const steps = own.map((one, index) => ({
    from: one.at,
    to: own[index + 1]?.at ?? Math.max(now, one.at),
    capacity: one[field]?.[type] ?? 0,
  }));
  return steps.filter((one, index) => index === steps.length - 1 || one.to > one.from);
}

// What calendars and windows of plans are going to change, as far ahead as the answer knows it; until then it is as now.
function stepsAhead(changes, { pool, type, capacityType }, present, now) {
  const field = CAPACITY_OF[capacityType];
  const own = changes.filter((one) => one.pool === pool && one[field]);
  if (!own.length) return [];
  const steps = own.map((one, index) => ({
    from: one.at,
    to: own[index + 1]?.at ?? one.at + LAST_CHANGE_SHOWN,
    capacity: one[field][type] ?? 0,
  }));
  return [{ from: now, to: own[0].at, capacity: present }, ...steps];
}

function packed({ pool, type, capacityType, items }, steps) {
  const bars = [];
  const warm = [];
  const freeAt = new Array(Math.max(0, ...steps.map((one) => one.capacity))).fill(-Infinity);
  for (const item of items.sort(BY_START)) {
    const rows = rowsFor(item, freeAt);
    for (const row of rows) freeAt[row] = item.to;
    for (const run of runs(rows)) (item.warm ? warm : bars).push({ ...item, ...run });
  }
  return { pool, type, capacityType, rows: freeAt.length, bars, warm, steps };
}

// Free rows side by side where there are such; what is or was warm stays where it last was.
function rowsFor(item, freeAt) {
  const count = Math.max(1, item.count);
  const freeBy = (instant) => [...freeAt.keys()].filter((row) => freeAt[row] <= instant);
  let free = freeBy(item.from);
  if (free.length < count) free = freeBy(item.from + CLOCKS_DIFFER);
  for (let row = freeAt.length; free.length < count; row += 1) free.push(row);
  if (item.warm || item.attempt.isWarmStart) {
    free.sort((one, other) => (freeAt[other] ?? -Infinity) - (freeAt[one] ?? -Infinity) || one - other);
    return free.slice(0, count).sort((one, other) => one - other);
  }
  const start = free.findIndex((row, index) => free[index + count - 1] === row + count - 1);
  return start < 0 ? free.slice(0, count) : free.slice(start, start + count);
}

// Rows side by side as one: `[0, 1, 2, 5]` is two runs.
function runs(rows) {
  const found = [];
  for (const row of rows) {
    const last = found.at(-1);
    if (last && last.first + last.count === row) last.count += 1;
    else found.push({ first: row, count: 1 });
  }
  return found;
}

// Bars as they are drawn: those too narrow to be told apart are one block with how many it stands for.
//
// @param scale how an instant becomes pixels.
// @returns {{x, width, first, count, bar, bars}[]} `bars`: how many; `bar`: the only one, or the first of them.
export function drawnBars(bars, window, scale, narrowest = 3) {
  const drawn = [];
  const blocks = new Map();
  for (const bar of bars) {
    if (bar.to < window.from || bar.from > window.to) continue;
    const left = scale(Math.max(bar.from, window.from));
    const width = Math.max(scale(Math.min(bar.to, window.to)) - left, 1);
    const key = `${bar.first}+${bar.count}`;
    const block = blocks.get(key);
    if (width < narrowest && block && left - (block.x + block.width) < 1) {
      block.width = Math.max(block.width, left + width - block.x);
      block.bars += 1;
      block.isMixed ||= block.bar.attempt?.team !== bar.attempt?.team;
      continue;
    }
    const one = { x: left, width, first: bar.first, count: bar.count, bar, bars: 1, isMixed: false };
    drawn.push(one);
    if (width < narrowest) blocks.set(key, one);
    else blocks.delete(key);
  }
  return drawn;
}

const NUMBERED = /^(.+)-\d+$/; // a task of an array, or of another series
const LEAST_OF_A_SERIES = 3;
const APART_IN_A_BAND = 300_000; // ms between two of a series on one row that are still one band

// Bars of a series, whose names differ by their number alone as an array's tasks do, as one bar where they follow
// each other on a row: `{series, tasks, failed}` beside what a bar has.
export function banded(bars) {
  const seriesOf = ({ attempt }) => NUMBERED.exec(attempt.job ?? "")?.[1] ?? null;
  const many = new Map();
  for (const bar of bars) many.set(seriesOf(bar), (many.get(seriesOf(bar)) ?? new Set()).add(bar.attempt.job));
  const last = new Map();
  const found = [];
  for (const bar of bars) {
    const name = seriesOf(bar);
    const rows = `${bar.first}+${bar.count}`;
    const before = last.get(rows);
    const failed = Number(endKind(bar.attempt) === "failed");
    const isBand = name !== null && many.get(name).size >= LEAST_OF_A_SERIES;
    if (isBand && before?.series === name && before.attempt.team === bar.attempt.team && bar.from - before.to < APART_IN_A_BAND) {
      Object.assign(before, { to: Math.max(before.to, bar.to), tasks: before.tasks + 1, failed: before.failed + failed });
      continue;
    }
    const one = isBand ? { ...bar, series: name, tasks: 1, failed } : bar;
    last.set(rows, one);
    found.push(one);
  }
  return found;
}

// Expected starts on the rows that they are likely to take: free ones first, then those whose job ends soonest.
//
// @param ghosts `{from, to, count}`, the soonest first; @param endsBy instants by job.
// @returns the ghosts with `first` and `count` of their rows, one for each run of rows side by side.
export function placedGhosts(ghosts, track, endsBy) {
  const freeAt = new Array(track.rows).fill(-Infinity);
  for (const { attempt, first, count } of track.bars) {
    if (attempt.isLive) freeAt.fill(endsBy.get(attempt.job) ?? Number.MAX_SAFE_INTEGER, first, first + count);
  }
  return ghosts.flatMap((ghost) => {
    const rows = [...freeAt.keys()].sort((one, other) => freeAt[one] - freeAt[other] || one - other).slice(0, ghost.count).sort((one, other) => one - other);
    for (const row of rows) freeAt[row] = Number.MAX_SAFE_INTEGER + ghost.from;
    return runs(rows).map((run) => ({ ...ghost, ...run }));
  });
}

// Instance time in use of all that there was in a window, up to now; null where nothing was to be used.
export function usedShare(track, window, now) {
  const end = Math.min(window.to, now);
  const within = ({ from, to }) => Math.max(0, Math.min(to, end) - Math.max(from, window.from));
  const had = track.steps.reduce((sum, one) => sum + within(one) * one.capacity, 0);
  const used = track.bars.reduce((sum, one) => sum + within(one) * one.count, 0);
  return had > 0 ? used / had : null;
}

// The bar at an instant in a row; `slack` in milliseconds, for what is narrower than a finger.
export function barAt(track, row, at, slack = 0) {
  let nearest = null;
  for (const bar of [...track.bars, ...track.warm]) {
    if (row < bar.first || row >= bar.first + bar.count) continue;
    const off = Math.max(bar.from - at, at - bar.to, 0);
    if (off <= slack && (!nearest || off < nearest.off)) nearest = { off, bar };
  }
  return nearest?.bar ?? null;
}

// Of each team its place in the palette; what has no colour of its own left gets one with a pattern. Those that
// are known beforehand come first, so that they keep their colours whatever is shown.
export function teamSeries(teams, known = [], colours = 8) {
  const names = [...new Set([...known, ...[...new Set(teams)].sort()])];
  return new Map(names.map((name, index) => [name, { colour: index % colours, isPatterned: index >= colours }]));
}

// What a month's usage comes to: shares, wastes with what helps against them, a forecast, a table as CSV.

export const CAUSES = {
  productive: { label: "productive", remedy: "" },
  unknown: {
    label: "no checkpoint seen",
    remedy: "list the checkpoint's bucket in the stack's parameter CheckpointBuckets, then saves are seen",
  },
  preemption: {
    label: "preempted",
    remedy: "save checkpoints more often, or raise preemption.min_runtime of the pool",
  },
  failures: { label: "failed", remedy: "trainmaster why JOB names the cause; try changes on one small instance first" },
  idle: { label: "idle", remedy: "idle: {then: stop} in the policy ends jobs whose GPUs do nothing" },
  warm_pool: { label: "warm pools", remedy: "shorten warm_pool.keep_alive or retain of the pool" },
  startup: {
    label: "start-up",
    remedy: "smaller images, FastFile or FSx input, a longer warm_pool.keep_alive for series of short jobs",
  },
};

// Instants of a UTC month `YYYY-MM`, half-open, as the ledger keeps it.
export function monthBounds(month) {
  const [year, number] = month.split("-").map(Number);
  return { from: Date.UTC(year, number - 1, 1), to: Date.UTC(year, number, 1) };
}

export const monthOf = (instant) => new Date(instant).toISOString().slice(0, 7);

// This month and those before it, newest first.
export function recentMonths(now, count = 12) {
  const at = new Date(now);
  return Array.from({ length: count }, (_, back) => monthOf(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - back, 1)));
}

// The sum of groups where the API gave none; a part that is unknown makes the sum unknown.
export function totalOf(answer) {
  if (answer.total) return answer.total;
  const groups = answer.groups ?? [];
  const by = {};
  for (const group of groups) for (const [cause, usd] of Object.entries(group.by ?? {})) by[cause] = (by[cause] ?? 0) + usd;
  const isKnown = groups.every((one) => one.usd !== null && one.usd !== undefined);
  return {
    usd: isKnown ? groups.reduce((sum, one) => sum + one.usd, 0) : null,
    instance_hours: groups.reduce((sum, one) => sum + (one.instance_hours ?? 0), 0),
    by,
  };
}

const sumOf = (by) => Object.values(by ?? {}).reduce((sum, usd) => sum + (usd ?? 0), 0);

// Productive money of all money, at least and at most: of some work nobody saw whether a checkpoint kept it.
// null where nothing was spent or what it was spent on is unknown.
export function usefulShare(spent) {
  const all = sumOf(spent?.by);
  if (!(all > 0)) return null;
  const least = spent.by.productive ?? 0;
  return { least: least / all, most: (least + (spent.by.unknown ?? 0)) / all };
}

// Each cause with its money and share, those that the API names, known ones first and in this order.
export function causesOf(spent) {
  const by = spent?.by ?? {};
  const all = sumOf(by);
  const names = [...Object.keys(CAUSES).filter((name) => name in by), ...Object.keys(by).filter((name) => !(name in CAUSES))];
  return names.map((name) => ({
    name,
    label: CAUSES[name]?.label ?? name,
    usd: by[name] ?? 0,
    share: all > 0 ? (by[name] ?? 0) / all : 0,
  }));
}

// What cost most without being of use: a group and a cause, with what helps.
export function topWastes(groups, most = 10) {
  const found = [];
  for (const group of groups ?? []) {
    for (const [cause, usd] of Object.entries(group.by ?? {})) {
      if (cause === "productive" || cause === "unknown" || !(usd > 0)) continue;
      const known = CAUSES[cause];
      found.push({ key: group.key ?? null, cause: known?.label ?? cause, usd, remedy: known?.remedy ?? "" });
    }
  }
  return found.sort((one, other) => other.usd - one.usd).slice(0, most);
}

// What the month will have cost: what was spent so far, as much a day for the rest of it.
//
// @param reserved worst case of what runs now, which is booked when it ends; null where it is unknown.
// @returns `{usd, perDay, days, atMost}`, or null: the month is over, has just begun, or a price is unknown.
export function forecastOf(spentUsd, month, now, reserved = null) {
  const { from, to } = monthBounds(month);
  const elapsed = (Math.min(now, to) - from) / 86_400_000;
  if (spentUsd === null || spentUsd === undefined || now >= to || elapsed < 1) return null;
  const perDay = spentUsd / elapsed;
  const usd = perDay * ((to - from) / 86_400_000);
  return { usd, perDay, days: elapsed, atMost: reserved === null ? null : Math.max(usd, spentUsd + reserved) };
}

const MEANT_AS_FORMULA = /^[=+\-@\t\r\n]/;

// Rows as CSV; what a spreadsheet would take for a formula begins with an apostrophe.
export function csvOf(groupBy, groups) {
  const causes = [...new Set(groups.flatMap((one) => Object.keys(one.by ?? {})))];
  const rows = groups.map((one) => [one.key ?? "", one.instance_hours, one.usd ?? "", ...causes.map((cause) => one.by?.[cause] ?? "")]);
  return [[groupBy, "instance_hours", "usd", ...causes], ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function csvCell(value) {
  const plain = typeof value === "number" ? String(value) : MEANT_AS_FORMULA.test(value ?? "") ? `'${value}` : String(value ?? "");
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

// How the teams of a pool of `GET /pools` stand, who has used most of its share first; null: past use decides nothing.
export function sharesOf({ fair_share: rules, teams }) {
  if (!rules?.weight) return null;
  const standing = (teams ?? []).filter((one) => one.fair_share).map(({ name, fair_share: one }) => ({
    team: name,
    hours: one.instance_hours ?? 0,
    share: one.share ?? null,
    used: one.used_share ?? null,
    times: one.times ?? null,
    points: one.points ?? null,
  }));
  const order = (one) => one.times ?? -1;
  return { halfLife: rules.half_life, teams: standing.sort((one, other) => order(other) - order(one) || one.team.localeCompare(other.team)) };
}

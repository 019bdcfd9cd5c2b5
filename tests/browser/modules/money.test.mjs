// Shares, wastes, forecast and CSV of a month; the week of a pool.

import assert from "node:assert/strict";
import { test } from "node:test";

import { sentence } from "../web/pages/money.js";

import {
  causesOf, csvOf, forecastOf, monthBounds, recentMonths, sharesOf, topWastes, totalOf, usefulShare,
} from "../web/money/figures.js";
import { adviceOn, adviceText, weekUse } from "../web/money/week_use.js";

const by = (productive, preemption, failures = 0) => ({
  productive, preemption, failures, idle: 0, warm_pool: 0, startup: 0,
});
const GROUPS = [
  { key: "vision", instance_hours: 10, usd: 100, by: by(90, 10) },
  { key: "language", instance_hours: 5, usd: 50, by: by(20, 5, 25) },
];

test("a total is the API's, else the sum of the groups", () => {
  assert.equal(totalOf({ total: { usd: 7 }, groups: GROUPS }).usd, 7);
  assert.deepEqual(totalOf({ groups: GROUPS }).usd, 150);
  assert.equal(totalOf({ groups: [...GROUPS, { key: "x", usd: null }] }).usd, null);
});

test("the useful share is productive money of all of it, a range where no checkpoint was seen", () => {
  assert.deepEqual(usefulShare(GROUPS[1]), { least: 0.4, most: 0.4 });
  assert.deepEqual(usefulShare({ by: { ...by(20, 30), unknown: 50 } }), { least: 0.2, most: 0.7 });
  assert.equal(usefulShare({ by: by(0, 0) }), null);
  assert.equal(usefulShare({}), null);
});

test("causes keep their order, and one of a newer stack comes last", () => {
  const causes = causesOf({ by: { ...by(90, 10), quantum: 100 } });
  assert.deepEqual(causes.map((one) => one.label), [
    "productive", "preempted", "failed", "idle", "warm pools", "start-up", "quantum",
  ]);
  assert.equal(causes.at(-1).share, 0.5);
});

test("the largest waste is first, productive money is none, each has what helps", () => {
  const wastes = topWastes(GROUPS, 2);
  assert.deepEqual(wastes.map(({ key, cause, usd }) => [key, cause, usd]), [
    ["language", "failed", 25], ["vision", "preempted", 10],
  ]);
  assert.match(wastes[1].remedy, /checkpoints/);
});

test("the forecast goes on as the days so far", () => {
  const now = Date.parse("2026-11-11T00:00:00Z");
  assert.deepEqual(forecastOf(100, "2026-11", now), { usd: 300, perDay: 10, days: 10, atMost: null });
  assert.equal(forecastOf(100, "2026-11", now, 400).atMost, 500);
  assert.equal(forecastOf(100, "2026-10", now), null);
  assert.equal(forecastOf(null, "2026-11", now), null);
  assert.equal(forecastOf(5, "2026-11", Date.parse("2026-11-01T06:00:00Z")), null);
});

test("months are UTC's, newest first", () => {
  assert.deepEqual(recentMonths(Date.parse("2026-01-31T23:59:00Z"), 3), ["2026-01", "2025-12", "2025-11"]);
  const { from, to } = monthBounds("2026-12");
  assert.deepEqual([new Date(from).toISOString(), new Date(to).toISOString()], [
    "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z",
  ]);
});

test("CSV holds names as they are, quoted, and no formulas", () => {
  const csv = csvOf("job", [{ key: '=HYPERLINK("x")', instance_hours: 1, usd: null, by: { productive: -1 } }]);
  assert.equal(csv, 'job,instance_hours,usd,productive\r\n"\'=HYPERLINK(""x"")",1,,-1\r\n');
});

const history = (hours, used, waiting) =>
  Array.from({ length: hours }, (_, hour) => ({
    at: new Date(Date.UTC(2026, 10, 2, hour)).toISOString(),
    "on-demand": { "ml.p5.48xlarge": { used, warm: 0, capacity: 4, waiting } },
    spot: {},
  }));

test("hours of the week are means over its weeks", () => {
  const [week] = weekUse([...history(1, 4, 0), ...history(1, 2, 2)]);
  const cells = week.cells.flat().filter(Boolean);
  assert.deepEqual(cells, [{ used: 0.75, waiting: 0.25, hours: 2 }]);
});

test("full with jobs waiting is buy, free is lend, else leave, and two days are needed", () => {
  const said = [history(168, 4, 3), history(168, 1, 0), history(168, 3, 0), history(24, 4, 3)].map(
    (points) => adviceOn(weekUse(points)[0]).advice,
  );
  assert.deepEqual(said, ["buy", "lend", "leave", null]);
  assert.match(adviceText(adviceOn(weekUse(history(168, 4, 3))[0])), /^Buy or reserve more: .* 100 %/);
});

test("what has no capacity has no week", () => {
  assert.deepEqual(weekUse([{ at: "2026-11-02T00:00:00Z", spot: { t: { used: 0, capacity: 0 } } }]), []);
});

test("shares stand by how many times they were used, teams without jobs last", () => {
  const team = (name, times) => ({
    name, fair_share: { instance_hours: 4, share: times === null ? null : 0.5, used_share: times && times / 2, times, points: times === null ? null : 3 },
  });
  const pool = { fair_share: { half_life: "7d", weight: 10 }, teams: [team("away", null), team("atlas", 0.4), team("vision", 1.6)] };
  const { halfLife, teams } = sharesOf(pool);
  assert.equal(halfLife, "7d");
  assert.deepEqual(teams.map((one) => one.team), ["vision", "atlas", "away"]);
  assert.deepEqual(teams[2], { team: "away", hours: 4, share: null, used: null, times: null, points: null });
  assert.equal(sharesOf({ ...pool, fair_share: { half_life: "7d", weight: 0 } }), null);
  assert.equal(sharesOf({ teams: [] }), null, "a stack that is older than the page");
});

test("the month in one sentence: of what budget, by whom most, and how much of it was useful", () => {
  const month = { month: "2026-11", groupBy: "team", budgets: { budgets: [{ limit: 400 }] }, running: null };
  const groups = [{ key: "language", usd: 50 }, { key: "vision", usd: 150 }];
  const total = { usd: 200, by: { productive: 150, failures: 50 } };
  assert.equal(sentence({ ...month, groups }, total), "200.00 USD were spent in 2026-11, 50 % of the budgets, most of it by vision (75 %); 75 % of it useful.");
  assert.equal(sentence({ ...month, groups: [] }, { usd: 0 }), "Nothing is booked in 2026-11 yet.");
  assert.equal(sentence({ ...month, groups: [] }, { usd: null }), "What 2026-11 cost is unknown.");
});

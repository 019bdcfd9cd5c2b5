// Which rows of a long queue are drawn, what its search says, and what a pool's last day looks like.

import assert from "node:assert/strict";
import { test } from "node:test";

import { localTimes } from "../web/format.js";
import { reachOf } from "../web/job_cells.js";
import { shaped } from "../web/other_shape.js";
import { countSaid } from "../web/pages/now.js";
import { shares } from "../web/pool_strips.js";
import { visibleRows } from "../web/table.js";

test("of ten thousand rows those that can be seen are drawn, and a few beyond", () => {
  const seen = visibleRows({ count: 10_000, above: 40 * 5000, height: 800, rowHeight: 40 });
  assert.deepEqual(seen, { first: 4988, last: 5032 });
});

test("a table below the window's edge begins with its first row", () => {
  assert.deepEqual(visibleRows({ count: 10_000, above: -300, height: 800, rowHeight: 40 }), { first: 0, last: 25 });
});

test("rows that have become fewer than were scrolled past end with the last", () => {
  assert.deepEqual(visibleRows({ count: 3, above: 40 * 5000, height: 800, rowHeight: 40 }), { first: 2, last: 3 });
  assert.deepEqual(visibleRows({ count: 0, above: 0, height: 800, rowHeight: 40 }), { first: 0, last: 0 });
});

test("a search says how many it found, and never 0 of 100 while more are unread", () => {
  assert.equal(countSaid(0, 100, { isSearch: true, isPartial: true }), "0 found so far; reading the rest of the queue");
  assert.equal(countSaid(0, 2000, { isSearch: true, isPartial: false }), "0 of 2,000 jobs");
  assert.equal(countSaid(1, 1, { isSearch: false, isPartial: false }), "1 job");
});

test("the last day of a pool is the part used of all its instances, spot ones too", () => {
  const points = [
    { at: "2026-11-27T20:00:00Z", "on-demand": { "ml.p5.48xlarge": { used: 1, capacity: 2 } }, spot: { "ml.g5.xlarge": { used: 2, capacity: 2 } } },
    { at: "2026-11-27T20:30:00Z", "on-demand": { "ml.p5.48xlarge": { used: 0, capacity: 0 } }, spot: {} },
  ];
  assert.deepEqual(shares(points).map((one) => one.share), [0.75, null]);
});

test("instants in a text of the API are on the reader's clock", () => {
  const now = new Date("2026-11-27T12:00:00Z");
  assert.equal(localTimes("expected by 2026-11-27 20:00 UTC at the latest", now), "expected by 21:00 at the latest");
  assert.equal(localTimes("since 2026-11-28T23:30:00Z", now), "since 29 Nov 00:30");
  assert.equal(localTimes("next window 2026-11-27 20:00 to 2026-11-28 08:30 UTC", now), "next window 21:00 to 28 Nov 09:30");
  assert.equal(localTimes("needs ml.p5.48xlarge=1, free 0", now), "needs ml.p5.48xlarge=1, free 0");
  assert.equal(localTimes("on 2026-13-45 20:00 UTC", now), "on 2026-13-45 20:00 UTC");
});

test("starts are drawn over the time until the last of them, an hour at least", () => {
  const now = new Date("2026-11-27T12:00:00Z");
  assert.equal(reachOf([{ starts_p90: "2026-11-27T12:01:00Z" }], now), 3600);
  assert.equal(reachOf([{ starts_p90: "2026-11-27T15:00:00Z" }, { starts_p90: null }], now), 3 * 3600);
});

test("a copy with other instances keeps the rest of the request, and may wait for both shapes", () => {
  const request = { TrainingJobName: "a", ResourceConfig: { InstanceType: "ml.p5.48xlarge", InstanceCount: 4, VolumeSizeInGB: 50 }, Tags: [{ Key: "priority", Value: "3" }, { Key: "trainmaster:alternatives", Value: "old" }] };
  const one = shaped(request, "a", { type: "ml.g5.12xlarge", count: 2, isEither: false });
  assert.deepEqual(one.ResourceConfig, { InstanceType: "ml.g5.12xlarge", InstanceCount: 2, VolumeSizeInGB: 50 });
  assert.deepEqual(one.Tags, [{ Key: "priority", Value: "3" }]);
  assert.notEqual(one.TrainingJobName, "a");
  const both = shaped(request, "a", { type: "ml.g5.12xlarge", count: 2, isEither: true });
  assert.equal(both.Tags.at(-1).Value, "ml.g5.12xlarge=2 ml.p5.48xlarge=4");
});

// Zoom, pan and axis of the timeline.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DAY, HOUR, axisMarks, brushed, covers, panned, readWindow, windowEndingNow, zoomed } from "../web/timeline/windows.js";

const NOW = Date.parse("2026-11-02T12:00:00Z");

test("a window ends a little after now, and is as wide as was asked", () => {
  assert.deepEqual(windowEndingNow(NOW, 10 * HOUR), { from: NOW - 7 * HOUR, to: NOW + 3 * HOUR });
});

test("zoom keeps the instant under the pointer where it is, and ends at an hour and at 30 days", () => {
  const window = { from: 0, to: 10 * HOUR };
  assert.deepEqual(zoomed(window, 0.5, 2 * HOUR), { from: HOUR, to: 6 * HOUR });
  assert.equal(zoomed(window, 0.001).to - zoomed(window, 0.001).from, HOUR);
  assert.equal(zoomed(window, 1000).to - zoomed(window, 1000).from, 30 * DAY);
});

test("pan does not leave what there is to see", () => {
  const window = { from: NOW - 4 * HOUR, to: NOW };
  assert.deepEqual(panned(window, -0.5, { now: NOW }), { from: NOW - 6 * HOUR, to: NOW - 2 * HOUR });
  assert.equal(panned(window, 99, { now: NOW }).to, NOW + 3 * HOUR);
  assert.equal(panned(window, -99, { now: NOW, earliest: NOW - 8 * HOUR }).to, NOW - 7 * HOUR);
});

test("more is read than is shown, never what is to come, never more than 31 days", () => {
  const read = readWindow({ from: NOW - 20 * DAY, to: NOW + DAY }, NOW);
  assert.deepEqual([(NOW - read.from) / DAY, read.to], [25, NOW]);
  const oldest = readWindow({ from: NOW - 60 * DAY, to: NOW - 30 * DAY }, NOW);
  assert.equal(oldest.to - oldest.from, 31 * DAY);
  assert.equal(covers(read, { from: NOW - 25 * DAY, to: NOW + DAY }, NOW), true);
  assert.equal(covers(read, { from: NOW - 26 * DAY, to: NOW }, NOW), false);
});

test("what was read covers the window that it was read for, whatever its width and place", () => {
  for (const span of [HOUR, DAY, 30 * DAY]) {
    for (const end of [NOW + span * 0.75, NOW, NOW - 3 * span]) {
      const window = { from: end - span, to: end };
      assert.equal(covers(readWindow(window, NOW), window, NOW), true, `${span / HOUR} h, ${(end - NOW) / HOUR} h`);
    }
  }
});

test("marks of the axis are whole hours of the reader's zone, also where the clock is changed", () => {
  // TZ=Europe/Berlin: at 03:00 on 25 October 2026 it becomes 02:00 again.
  const from = Date.parse("2026-10-24T22:00:00Z");
  const marks = axisMarks({ from, to: from + 12 * HOUR }, 800);
  const said = marks.map(({ at }) => new Date(at).toLocaleTimeString("en-GB", { timeZone: "Europe/Berlin" }).slice(0, 5));
  assert.deepEqual(said.slice(0, 5), ["00:00", "01:00", "02:00", "02:00", "03:00"]);
  assert.equal(marks[0].isDay, true);
});

test("no window has more marks than its width holds", () => {
  for (const span of [HOUR, 5 * HOUR, DAY, 9 * DAY, 30 * DAY]) {
    for (const width of [340, 1200, 3800]) {
      const marks = axisMarks({ from: NOW - span, to: NOW }, width);
      assert.ok(marks.length >= 1 && marks.length <= width / 40, `${span / HOUR} h on ${width}: ${marks.length}`);
    }
  }
});

test("a brush shows what lies between its ends, in either direction, an hour at least and some of the past", () => {
  assert.deepEqual(brushed(NOW - 9 * HOUR, NOW - 5 * HOUR, NOW), { from: NOW - 9 * HOUR, to: NOW - 5 * HOUR });
  assert.deepEqual(brushed(NOW - 5 * HOUR, NOW - 9 * HOUR, NOW), { from: NOW - 9 * HOUR, to: NOW - 5 * HOUR });
  assert.deepEqual(brushed(NOW - 5 * HOUR, NOW - 5 * HOUR + 1000, NOW).to - brushed(NOW - 5 * HOUR, NOW - 5 * HOUR + 1000, NOW).from, HOUR);
  assert.deepEqual(brushed(NOW + 2 * HOUR, NOW + 6 * HOUR, NOW), { from: NOW - HOUR, to: NOW + 3 * HOUR });
});

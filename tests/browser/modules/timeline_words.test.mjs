// What is written on the timeline and beside it, and what its address says.

import assert from "node:assert/strict";
import { test } from "node:test";

import { barDetails, endSaid, ghostsOf } from "../web/timeline/details.js";
import { ghostLabel } from "../web/timeline/drawing.js";
import { clipped } from "../web/timeline/drawing.js";
import { paramsOf, windowOf } from "../web/timeline/reading.js";
import { HOUR } from "../web/timeline/windows.js";

const NOW = Date.parse("2026-11-02T12:00:00Z");
const attempt = {
  job: "llama-7b", attempt: 1, team: "vision", instances: { "ml.p5.48xlarge": 2 }, capacityType: "spot",
  from: NOW - 3 * HOUR, trained: NOW - 2.9 * HOUR, to: NOW - HOUR, isLive: false, end: "preemption",
  preemptedBy: "urgent", preemptedByTeam: "language", isWarmStart: false, lostSeconds: 720,
};

test("a name loses its middle, and nothing is written where nothing fits", () => {
  assert.equal(clipped("llama-7b", 100), "llama-7b");
  assert.equal(clipped("vit-huge-sweep-0001", 70), "vit-…0001");
  assert.equal(clipped("vit-huge-sweep-0001", 20), "");
});

test("letters that fill a square count as two", () => {
  assert.equal(clipped("学習ジョブ学習", 70), "学習…学習");
  assert.equal(clipped("😀😀😀😀😀😀", 70), "😀😀…😀😀");
});

test("an attempt is described in words: who preempted it, what was lost", () => {
  const { title, facts, job } = barDetails({ attempt }, NOW);
  const said = Object.fromEntries(facts);
  assert.deepEqual([title, job], ["llama-7b, attempt 1", "llama-7b"]);
  assert.deepEqual(
    [said.instances, said["start-up"], said.trained, said.end, said.lost],
    ["2x ml.p5.48xlarge spot", "6m", "1h54m", "preempted by urgent", "12m of training"],
  );
});

test("a job of another team is named by its team alone", () => {
  assert.equal(endSaid({ ...attempt, preemptedBy: null }), "preempted by a job of team language");
  assert.equal(endSaid({ ...attempt, preemptedBy: null, preemptedByTeam: null }), "preempted by a job of another team");
  assert.equal(barDetails({ attempt: { ...attempt, job: null } }, NOW).title, "(other team's), attempt 1");
  assert.equal(endSaid({ ...attempt, isLive: true, end: null }), "is being preempted by urgent");
});

test("expected starts are the soonest, and those of which nothing is known are left out", () => {
  const at = (hour) => new Date(NOW + hour * HOUR).toISOString();
  const ghosts = ghostsOf([{ name: "b", p50: at(2), p90: at(3) }, { name: null, p50: at(1), p90: null }, { name: "c", p50: null }]);
  assert.deepEqual(ghosts.map(({ name, from, to }) => [name, (from - NOW) / HOUR, (to - NOW) / HOUR]), [
    ["(other team's)", 1, 1], ["b", 2, 3],
  ]);
});

test("an address leads to the same window again, with now in it or not", () => {
  for (const window of [{ from: NOW - 24 * HOUR, to: NOW - HOUR }, { from: NOW - 18 * HOUR, to: NOW + 6 * HOUR }]) {
    const again = windowOf(paramsOf(window, NOW), NOW);
    assert.deepEqual(again, window);
  }
});

test("an address that says nonsense is a day", () => {
  for (const params of [{}, { span: "x", to: "y", ahead: "z" }, { span: "-5" }]) {
    const { from, to } = windowOf(params, NOW);
    assert.equal((to - from) / HOUR, 24, JSON.stringify(params));
  }
});

test("the name of an expected start never lies over the past", () => {
  const past = 700;
  for (const [left, right] of [[710, 720], [720, 980], [760, 900], [830, 995], [960, 998], [705, 999], [990, 1000]]) {
    for (const name of ["short", "pytorch-training…22-06-04-17-148"]) {
      const { x, text, anchor } = ghostLabel(name, { left, right }, { begin: past, end: 1000 });
      const width = text.length * 7;
      const begin = anchor === "end" ? x - width : x;
      assert.ok(!text || begin >= past, `${name} at ${left} begins at ${begin}`);
      assert.ok(!text || begin + width <= 1000, `${name} at ${left} ends at ${begin + width}`);
    }
  }
});

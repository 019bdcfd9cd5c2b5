// Where attempts, warm pools and capacity lie on the timeline.

import assert from "node:assert/strict";
import { test } from "node:test";

import { linksOf } from "../web/timeline/links.js";
import { banded, barAt, drawnBars, endKind, packedTracks, placedGhosts, readTimeline, teamSeries, usedShare } from "../web/timeline/tracks.js";

const P5 = "ml.p5.48xlarge";
const NOW = Date.parse("2026-11-02T12:00:00Z");
const at = (hour) => `2026-11-02T${String(hour).padStart(2, "0")}:00:00Z`;
const hours = (bar) => [bar.from, bar.to].map((instant) => (instant - Date.parse(at(0))) / 3_600_000);

const attempt = (job, from, to, more = {}) => ({
  job, attempt: 0, team: "vision", pool: "p5", instances: { [P5]: 1 }, capacity_type: "on-demand",
  claimed_at: at(from), training_since: null, ended_at: to === null ? null : at(to), end: to === null ? null : "completed",
  preempted_by: null, warm_start: false, lost_seconds: 0, ...more,
});
const answer = (attempts, more = {}) => ({
  attempts, warm: [], since: at(0), next_token: null,
  capacity: [{ at: at(0), pool: "p5", capacity: { [P5]: 2 }, spot_capacity: {} }], ...more,
});
const tracksOf = (document) => packedTracks(readTimeline(document, NOW), NOW);
const lying = (track) => track.bars.map((bar) => `${bar.attempt.job}@${bar.first}+${bar.count}`);

test("attempts that follow each other share a row, those at the same time do not", () => {
  const [track] = tracksOf(answer([attempt("a", 0, 4), attempt("b", 1, 3), attempt("c", 3, 5), attempt("d", 4, 6)]));
  assert.deepEqual(lying(track), ["a@0+1", "b@1+1", "c@1+1", "d@0+1"]);
  assert.equal(track.rows, 2);
});

test("an attempt of several instances is one bar where rows side by side are free", () => {
  const two = { instances: { [P5]: 2 } };
  const four = { capacity: [{ at: at(0), pool: "p5", capacity: { [P5]: 4 }, spot_capacity: {} }] };
  const [track] = tracksOf(answer([attempt("a", 0, 2), attempt("b", 0, 9), attempt("c", 3, 5, two)], four));
  assert.deepEqual(lying(track), ["a@0+1", "b@1+1", "c@2+2"]);
});

test("rows that are free but apart are used as they are", () => {
  const three = { capacity: [{ at: at(0), pool: "p5", capacity: { [P5]: 3 }, spot_capacity: {} }] };
  const two = { instances: { [P5]: 2 } };
  const [track] = tracksOf(answer([attempt("a", 0, 2), attempt("b", 0, 9), attempt("c", 3, 5, two)], three));
  assert.deepEqual(lying(track), ["a@0+1", "b@1+1", "c@0+1", "c@2+1"]);
});

test("what is above the capacity gets rows of its own: nothing that ran is left out", () => {
  const [track] = tracksOf(answer([attempt("a", 0, 4), attempt("b", 0, 4), attempt("foreign", 1, 2)]));
  assert.deepEqual([track.rows, lying(track).at(-1)], [3, "foreign@2+1"]);
});

test("a warm interval stays on the row of what it came from, and its job takes over at the claim", () => {
  const warm = [{ pool: "p5", instance_type: P5, instances: 1, since: at(4), until: at(6), reused_by: "c" }];
  const [track] = tracksOf(
    answer([attempt("a", 0, 2), attempt("b", 0, 4), attempt("c", 5, 8, { warm_start: true })], { warm }),
  );
  assert.deepEqual(lying(track), ["a@0+1", "b@1+1", "c@1+1"]);
  assert.deepEqual(track.warm.map((one) => [one.first, ...hours(one)]), [[1, 4, 5]]);
  assert.equal(track.rows, 2);
});

test("a live attempt reaches to now", () => {
  const [track] = tracksOf(answer([attempt("a", 3, null)]));
  assert.deepEqual([hours(track.bars[0]), track.bars[0].attempt.isLive], [[3, 12], true]);
});

test("capacity is a line of steps, the last of them up to now", () => {
  const capacity = [0, 6, 9].map((hour, index) => ({
    at: at(hour), pool: "p5", capacity: { [P5]: [2, 1, 3][index] }, spot_capacity: {},
  }));
  const [track] = tracksOf(answer([], { capacity }));
  assert.deepEqual(track.steps.map((one) => [...hours(one), one.capacity]), [[0, 6, 2], [6, 9, 1], [9, 12, 3]]);
  assert.equal(track.rows, 3);
});

test("types and capacity types have tracks of their own, in the order of their names", () => {
  const mixed = attempt("a", 0, 1, { instances: { "ml.g5.xlarge": 1, [P5]: 1 } });
  const tracks = tracksOf(answer([mixed, attempt("s", 0, 1, { capacity_type: "spot" })]));
  assert.deepEqual(tracks.map((one) => [one.type, one.capacityType]), [
    ["ml.g5.xlarge", "on-demand"], [P5, "on-demand"], [P5, "spot"],
  ]);
});

test("a row that cannot be read is counted and does not stop the others", () => {
  const read = readTimeline(answer([attempt("a", 0, 1), { job: "b", claimed_at: "soon" }, {}]), NOW);
  assert.deepEqual([read.attempts.length, read.unread], [1, 2]);
});

test("ends are told apart by what the API says", () => {
  const kinds = ["completed", "preemption", "stopped-by-user", "max-runtime", "gpu-oom", "hardware", null].map((end) =>
    endKind({ isLive: end === null, end }),
  );
  assert.deepEqual(kinds, ["completed", "preempted", "stopped", "stopped", "failed", "failed", "live"]);
});

test("bars too narrow to be told apart are one block that knows how many it stands for", () => {
  const bar = (from, to) => ({ first: 0, count: 1, from, to, attempt: { team: "vision" } });
  const drawn = drawnBars([bar(0, 10), bar(10, 20), bar(20, 30), bar(500, 900)], { from: 0, to: 1000 }, (ms) => ms / 10);
  assert.deepEqual(drawn.map(({ x, width, bars }) => [x, width, bars]), [[0, 3, 3], [50, 40, 1]]);
});

test("bars are cut at the window, and those outside are not drawn", () => {
  const bar = (from, to) => ({ first: 0, count: 1, from, to, attempt: { team: "vision" } });
  const drawn = drawnBars([bar(0, 90), bar(50, 150), bar(180, 400), bar(500, 600)], { from: 100, to: 200 }, (ms) => ms - 100);
  assert.deepEqual(drawn.map(({ x, width }) => [x, width]), [[0, 50], [80, 20]]);
});

test("the bar under a pointer is found, also beside a narrow one", () => {
  const [track] = tracksOf(answer([attempt("a", 0, 4), attempt("b", 1, 3)]));
  const instant = Date.parse(at(4)) + 60_000;
  assert.equal(barAt(track, 0, instant), null);
  assert.equal(barAt(track, 0, instant, 120_000).attempt.job, "a");
  assert.equal(barAt(track, 1, Date.parse(at(2))).attempt.job, "b");
});

test("a team keeps its colour, and the ninth gets a pattern", () => {
  const series = teamSeries(["b", "a", "b", ...["c", "d", "e", "f", "g", "h", "i"]]);
  assert.deepEqual(series.get("a"), { colour: 0, isPatterned: false });
  assert.deepEqual(series.get("i"), { colour: 0, isPatterned: true });
});

test("a claim some seconds before the end of what it follows needs no row of its own", () => {
  const [track] = tracksOf(
    answer([attempt("a", 0, 4), attempt("b", 0, 9), attempt("c", 4, 6, { claimed_at: "2026-11-02T03:59:30Z" })]),
  );
  assert.deepEqual([track.rows, lying(track).at(-1)], [2, "c@0+1"]);
});

test("teams that are known beforehand keep their colours, whoever else is shown", () => {
  assert.equal(teamSeries(["zebra", "aardvark"], ["vision", "language"]).get("language").colour, 1);
  assert.equal(teamSeries(["zebra"], ["vision", "language"]).get("language").colour, 1);
});

test("time in use is counted up to now, in instances", () => {
  const [track] = tracksOf(answer([attempt("a", 0, 6), attempt("b", 6, null, { instances: { [P5]: 2 } })]));
  const window = { from: Date.parse(at(0)), to: Date.parse(at(0)) + 20 * 3_600_000 };
  assert.equal(usedShare(track, window, NOW), 0.75);
  assert.equal(usedShare({ steps: [], bars: [] }, window, NOW), null);
});

test("what the calendar is going to change is drawn ahead of now, and nothing of it counts as used or there", () => {
  const ahead = [
    { at: at(14), pool: "p5", capacity: { [P5]: 0 }, reserved: {} },
    { at: at(18), pool: "p5", capacity: { [P5]: 3 }, reserved: {} },
    { at: at(15), pool: "g5", capacity: {}, reserved: {} },
  ];
  const [track] = tracksOf(answer([attempt("a", 0, 6)], { ahead }));
  const steps = track.steps.map((one) => [...hours(one), one.capacity]);
  assert.deepEqual(steps, [[0, 12, 2], [12, 14, 2], [14, 18, 0], [18, 42, 3]]);
  assert.equal(track.rows, 3);
  const window = { from: Date.parse(at(0)), to: Date.parse(at(20)) };
  assert.equal(usedShare(track, window, NOW), 0.25);
  const [plain] = tracksOf(answer([attempt("a", 0, 6)]));
  assert.deepEqual(plain.steps.map((one) => [...hours(one), one.capacity]), [[0, 12, 2]]);
});

test("a plan has a track of its own, with its windows ahead, and takes none of the capacity on demand", () => {
  const capacity = [{ at: at(0), pool: "p5", capacity: { [P5]: 4 }, spot_capacity: {}, plan_capacity: { [P5]: 0 } }];
  const ahead = [
    { at: at(14), pool: "p5", capacity: { [P5]: 4 }, reserved: {}, plan_capacity: { [P5]: 2 } },
    { at: at(18), pool: "p5", capacity: { [P5]: 4 }, reserved: {}, plan_capacity: { [P5]: 0 } },
  ];
  const steps = (track) => track.steps.map((one) => [...hours(one), one.capacity]);
  const [onDemand, plan, ...rest] = tracksOf(answer([attempt("a", 0, 6, { capacity_type: "plan" })], { capacity, ahead }));
  assert.deepEqual([onDemand.capacityType, plan.capacityType, rest.length], ["on-demand", "plan", 0]);
  assert.deepEqual(steps(plan), [[0, 12, 0], [12, 14, 0], [14, 18, 2], [18, 42, 0]]);
  assert.deepEqual(steps(onDemand).map(([, , instances]) => instances), [4, 4, 4, 4]);
  const [, later] = tracksOf(answer([], { ahead }));
  assert.deepEqual(steps(later), [[0, 12, 0], [12, 14, 0], [14, 18, 2], [18, 42, 0]], "bought, and not open yet");
});

const ran = (job, from, to, more = {}) => ({ attempt: { job, team: "vision", isLive: false, end: "completed", ...more }, from, to, first: 0, count: 1 });

test("tasks of an array that follow each other on a row are one band, which counts those that failed", () => {
  const tasks = [ran("sweep-0", 0, 10), ran("sweep-1", 12, 20, { end: "gpu-oom" }), ran("sweep-10", 21, 30)];
  const [band, ...rest] = banded(tasks);
  assert.deepEqual([band.series, band.from, band.to, band.tasks, band.failed, rest.length], ["sweep", 0, 30, 3, 1, 0]);
  assert.equal(tasks[0].to, 10, "what is pointed at is still the task");
});

test("two jobs with numbers are no array, nor is what lies far apart or has another job between", () => {
  assert.equal(banded([ran("eval-1", 0, 10), ran("eval-2", 11, 20)]).length, 2);
  assert.equal(banded([ran("s-0", 0, 10), ran("s-1", 10 + 3_600_000, 20 + 3_600_000), ran("s-2", 0, 1, {})].slice(0, 2)).length, 2);
  assert.equal(banded([ran("s-0", 0, 10), ran("other", 10, 20), ran("s-1", 20, 30), ran("s-2", 30, 40)]).length, 3);
});

test("an expected start lies on a free row, else on that of the job that ends soonest, and on as many as it takes", () => {
  const live = (job, first) => ({ attempt: { job, isLive: true }, from: 0, to: 50, first, count: 1 });
  const track = { rows: 4, bars: [live("a", 0), live("b", 1), live("c", 2)] };
  const ends = new Map([["a", 900], ["b", 200], ["c", 500]]);
  const placed = placedGhosts([{ name: "one", from: 60, to: 70, count: 1 }, { name: "two", from: 80, to: 90, count: 2 }], track, ends);
  assert.deepEqual(placed.map(({ name, first, count }) => [name, first, count]), [["one", 3, 1], ["two", 1, 2]]);
});

test("lines go from what a job waits for to it, and on to what waits for it", () => {
  const jobs = new Map([["train", { name: "train", after: [{ job: "prepare" }, { job: null }] }], ["eval", { name: "eval", after: [{ job: "train" }] }], ["other", { name: "other", after: [] }]]);
  assert.deepEqual(linksOf(jobs, "train"), [["prepare", "train"], ["train", "eval"]]);
  assert.deepEqual(linksOf(jobs, "other"), []);
});

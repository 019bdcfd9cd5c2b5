// Which task of an array is the best, how its values lie on axes or in a grid, and what failed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { axesOf, bestFirst, failedByClass, goodness, gridOf, placeOn } from "../web/arrays/results.js";

const task = (index, values, loss, more = {}) => ({ index, values, metrics: loss === null ? {} : { loss }, state: "completed", code: "completed", ...more });
const GRID = [
  task(0, { lr: "1e-4", batch: "16", seed: "1" }, 2.5),
  task(1, { lr: "1e-4", batch: "32", seed: "1" }, 2.4),
  task(2, { lr: "1e-2", batch: "16", seed: "1" }, 9),
  task(3, { lr: "1e-2", batch: "32", seed: "1" }, null, { state: "failed", code: "gpu-oom" }),
];

test("the smallest is the best unless the largest is asked for; what failed comes last even with a metric", () => {
  const failed = { ...task(4, {}, 0.1), state: "failed" };
  assert.deepEqual(bestFirst([failed, ...GRID], "loss").map(({ index }) => index), [1, 0, 2, 3, 4]);
  assert.deepEqual(bestFirst(GRID, "loss", true).map(({ index }) => index), [2, 0, 1, 3]);
});

test("values that all tasks share are no axis; numbers are in their order, wide ones by powers", () => {
  const axes = axesOf(["lr", "batch", "seed"], GRID);
  assert.deepEqual(axes.map(({ name, values, isLog }) => [name, values, isLog]), [["lr", ["1e-4", "1e-2"], true], ["batch", ["16", "32"], false]]);
  assert.equal(placeOn(axes[0], "1e-3"), 0.5);
  assert.equal(placeOn(axes[1], "24"), 0.5);
});

test("words stand at equal distances in the order of their letters", () => {
  const [axis] = axesOf(["opt"], [task(0, { opt: "sgd" }, 1), task(1, { opt: "adam" }, 1), task(2, { opt: "lion" }, 1)]);
  assert.deepEqual(axis.values.map((value) => placeOn(axis, value)), [0, 0.5, 1]);
});

test("two values with a task a cell are a grid; a cell twice, or a third value, is none", () => {
  const grid = gridOf(axesOf(["lr", "batch"], GRID), GRID);
  assert.equal(grid.at("1e-2", "32").index, 3);
  const twice = [...GRID, task(4, { lr: "1e-4", batch: "16" }, 3)];
  assert.equal(gridOf(axesOf(["lr", "batch"], twice), twice), null);
  const three = GRID.map((one) => ({ ...one, values: { ...one.values, seed: String(one.index) } }));
  assert.equal(gridOf(axesOf(["lr", "batch", "seed"], three), three), null);
});

test("goodness goes from the worst to the best, and is unknown without the metric", () => {
  assert.deepEqual(GRID.map((one) => goodness(one, GRID, "loss", false)), [(9 - 2.5) / (9 - 2.4), 1, 0, null]);
  assert.deepEqual(GRID.map((one) => goodness(one, GRID, "loss", true))[2], 1);
});

test("tasks that failed are grouped by their class, the most frequent first", () => {
  const tasks = ["nccl", "gpu-oom", "gpu-oom"].map((code, index) => task(index, {}, null, { state: "failed", code }));
  assert.deepEqual(failedByClass([...GRID.slice(0, 3), ...tasks]).map(({ code, tasks: failed }) => [code, failed.length]), [["gpu-oom", 2], ["nccl", 1]]);
});

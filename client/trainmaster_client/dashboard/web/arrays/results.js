// What came of an array's tasks: which is the best, which values made a difference, and why others failed. Data in, data out.

const LOG_FROM = 20; // times the smallest value from which an axis is one of powers
const MOST_CELLS = 24; // values of one side of a grid

// Tasks with the best first; what has no such metric, or did not complete, comes after, by index.
export function bestFirst(tasks, metric, isLargest = false) {
  const rank = (task) => (task.state === "completed" ? (task.metrics[metric] ?? null) : null);
  return [...tasks].sort((one, other) => {
    const [a, b] = [rank(one), rank(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null) || one.index - other.index;
    return (isLargest ? b - a : a - b) || one.index - other.index;
  });
}

// The values that differ between tasks, each with its places: `{name, values, isNumber, isLog}`, the smallest first.
export function axesOf(names, tasks) {
  const axes = names.map((name) => {
    const values = [...new Set(tasks.map((task) => task.values[name]).filter((value) => value !== undefined))];
    const isNumber = values.every((value) => value.trim() !== "" && Number.isFinite(Number(value)));
    values.sort(isNumber ? (a, b) => a - b : undefined);
    const [least, most] = [Number(values[0]), Number(values.at(-1))];
    return { name, values, isNumber, isLog: isNumber && least > 0 && most / least >= LOG_FROM };
  });
  return axes.filter((axis) => axis.values.length > 1);
}

// A grid of two values that has at most one task a cell; null where parallel lines say more.
export function gridOf(axes, tasks) {
  if (axes.length !== 2 || axes.some((axis) => axis.values.length > MOST_CELLS)) return null;
  const [down, across] = axes;
  const cells = new Map(tasks.map((task) => [JSON.stringify([task.values[down.name], task.values[across.name]]), task]));
  if (cells.size < tasks.length) return null;
  return { down, across, at: (row, column) => cells.get(JSON.stringify([row, column])) ?? null };
}

// Where a value lies on its axis, 0 to 1; words stand at equal distances.
export function placeOn(axis, value) {
  if (!axis.isNumber) return axis.values.indexOf(value) / (axis.values.length - 1);
  const scale = axis.isLog ? Math.log10 : Number;
  const [least, most] = [scale(Number(axis.values[0])), scale(Number(axis.values.at(-1)))];
  return (scale(Number(value)) - least) / (most - least || 1);
}

// `[{code, tasks}]` of those that failed, the most frequent class first.
export function failedByClass(tasks) {
  const found = new Map();
  for (const task of tasks) if (task.state === "failed") found.set(task.code, [...(found.get(task.code) ?? []), task]);
  return [...found].map(([code, failed]) => ({ code, tasks: failed })).sort((one, other) => other.tasks.length - one.tasks.length);
}

// 0 for the worst to 1 for the best of those that have the metric; null without it.
export function goodness(task, tasks, metric, isLargest) {
  const known = tasks.map((one) => one.metrics[metric]).filter(Number.isFinite);
  const [least, most, own] = [Math.min(...known), Math.max(...known), task.metrics[metric]];
  if (!Number.isFinite(own)) return null;
  const share = most > least ? (own - least) / (most - least) : 1;
  return isLargest || most === least ? share : 1 - share;
}

// Values against a metric: a grid of two values, else parallel coordinates with a line for each task.

import { short } from "../chart.js";
import { h, svg } from "../dom.js";
import { scrolling } from "../plain_table.js";
import { axesOf, goodness, gridOf, placeOn } from "./results.js";

const [HEIGHT, TOP, BOTTOM, SIDE] = [300, 36, 22, 64];
const MOST_MARKS = 9; // values written beside an axis
const MOST_LINES = 2000;
const DARKEST = 62; // percent of the heat colour, on which dark text can still be read

export function resultsPicture({ values, tasks, metric, isLargest, width, best, hrefOf }) {
  const axes = axesOf(values, tasks);
  const asked = { tasks, metric, isLargest, best, hrefOf, width, share: (task) => goodness(task, tasks, metric, isLargest) };
  const grid = gridOf(axes, tasks);
  if (grid) return gridTable(grid, asked);
  if (!metric || tasks.length < 2) return null;
  return parallel(axes.length ? axes : [{ name: "index", values: [...tasks.keys()].map(String), isNumber: true, isLog: false }], asked);
}

function gridTable({ down, across, at }, asked) {
  return scrolling("Grid of values",
    h("table", { class: "heat grid-of-values" },
      h("caption", {}, `${asked.metric || "state"}: ${down.name} down, ${across.name} across; the stronger the colour the better`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, `${down.name} \\ ${across.name}`), across.values.map((value) => h("th", { scope: "col" }, value)))),
      h("tbody", {}, down.values.map((row) => h("tr", {}, h("th", { scope: "row" }, row), across.values.map((column) => cell(at(row, column), asked)))))));
}

function cell(task, { metric, share, best, hrefOf }) {
  if (!task) return h("td", { class: "unknown" }, "–");
  const part = share(task);
  const isGood = part !== null && task.state === "completed";
  const text = isGood ? short(task.metrics[metric]) : task.state === "failed" ? `✗ ${task.code}` : task.state;
  const link = task.is_job ? h("a", { href: hrefOf(task), title: `task ${task.index}: ${task.state}` }, text) : text;
  const look = [!isGood && "unknown", task === best && "best", task.state === "failed" && "bad"];
  return h("td", { class: look.filter(Boolean).join(" "), vars: isGood ? { "--used": `${Math.round(DARKEST * part)}%` } : null }, link);
}

function parallel(axes, { tasks, metric, isLargest, width, share, best }) {
  const lines = tasks.filter((task) => Number.isFinite(task.metrics[metric])).slice(0, MOST_LINES);
  const known = lines.map((task) => String(task.metrics[metric])).sort((a, b) => a - b);
  const all = [...axes, { name: metric, values: [...new Set(known)], isNumber: true, isLog: false }];
  const wide = Math.max(width, 160 + 90 * all.length);
  const x = (index) => SIDE + (index / (all.length - 1)) * (wide - 2 * SIDE);
  const y = (axis, value) => HEIGHT - BOTTOM - placeOn(axis, value) * (HEIGHT - TOP - BOTTOM);
  const valueOf = (task, axis, index) => (index === all.length - 1 ? String(task.metrics[metric]) : axis.name === "index" ? String(task.index) : task.values[axis.name]);
  const path = (task) => all.map((axis, index) => [x(index), y(axis, valueOf(task, axis, index))]).filter(([, at]) => Number.isFinite(at)).map(([a, b], index) => `${index ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
  const worstFirst = [...lines].sort((one, other) => share(one) - share(other));
  const label = `${lines.length} tasks as lines over ${all.map((axis) => axis.name).join(", ")}; the ${isLargest ? "largest" : "smallest"} ${metric} is task ${best?.index ?? "of none"}`;
  return h("div", { class: "scroll panel parallel", tabindex: "0", role: "region", "aria-label": "Values of the tasks" },
    svg("svg", { viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT, role: "img", "aria-label": label },
      worstFirst.map((task) => {
        const element = svg("path", { class: task === best ? "task best" : "task", d: path(task) }, svg("title", {}, saidOf(task, metric)));
        element.style.setProperty("--good", `${Math.round(100 * share(task))}%`);
        return element;
      }),
      all.map((axis, index) => drawnAxis(axis, x(index), y))));
}

export const saidOf = (task, metric) => `task ${task.index}: ${[...Object.entries(task.values).map(([name, value]) => `${name} ${value}`), metric in task.metrics && `${metric} ${short(task.metrics[metric])}`].filter(Boolean).join(", ")}`;

function drawnAxis(axis, x, y) {
  const { values } = axis;
  const shown = values.length <= MOST_MARKS ? values : [0, 0.25, 0.5, 0.75, 1].map((part) => values[Math.round(part * (values.length - 1))]);
  let last = Infinity;
  const marks = shown.filter((value) => (last - y(axis, value) >= 13 ? ((last = y(axis, value)), true) : false));
  return svg("g", { class: "axis-of-values" },
    svg("path", { d: `M${x} ${TOP}V${HEIGHT - BOTTOM}` }),
    svg("text", { class: "axis-name", x, y: 18, "text-anchor": "middle" }, axis.name),
    marks.map((value) => svg("text", { x: x - 6, y: y(axis, value) + 4, "text-anchor": "end" }, axis.isNumber ? short(Number(value)) : value)));
}

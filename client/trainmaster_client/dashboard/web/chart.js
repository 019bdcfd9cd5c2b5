// Curves as SVG: one line an attempt, told apart by colour and dashes, with ticks below for checkpoints.

import { h, svg } from "./dom.js";

const HEIGHT = 190;
const LEFT = 56;
const BOTTOM = 24;
const TOP = 10;
const RIGHT = 12;
const LEAST_WIDTH = 260;
const Y_TICKS = 4;

// asked: {title, series: [{label, points: [[x, y]]}], ticks: [x], width, log, xText(x), yText(y), xName, bounds}
export function chart(asked) {
  const series = asked.series.filter((one) => one.points.length);
  const heading = h("h3", {}, asked.title);
  if (!series.length) return h("figure", { class: "chart" }, heading, h("p", { class: "note" }, asked.nothing ?? "Nothing yet."));
  const width = Math.max(LEAST_WIDTH, Math.floor(asked.width));
  const isLog = asked.log && series.every((one) => one.points.every(([, y]) => y > 0));
  const [xs, ys] = [extent(series, 0), asked.bounds ?? extent(series, 1)];
  const place = { x: scale(xs, LEFT, width - RIGHT), y: scale(isLog ? ys.map(Math.log10) : ys, HEIGHT - BOTTOM, TOP) };
  const y = (value) => place.y(isLog ? Math.log10(value) : value);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": said(asked, series) },
    axes(asked, { xs, ys, isLog, place, y, width }),
    (asked.ticks ?? []).filter((x) => x >= xs[0] && x <= xs[1]).map((x) =>
      svg("path", { class: "tick", d: `M${place.x(x).toFixed(1)} ${HEIGHT - BOTTOM}v-6` }, svg("title", {}, `checkpoint at ${asked.xText(x)}`))),
    series.map((one, index) => line(one, index, place.x, y)),
  );
  return h("figure", { class: "chart" }, heading, picture, legend(series));
}

function line(one, index, x, y) {
  const text = one.points.map(([a, b], at) => `${at ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  const dot = one.points.length === 1 ? svg("circle", { cx: x(one.points[0][0]), cy: y(one.points[0][1]), r: 3 }) : null;
  return svg("g", { class: `line line-${index % 4}` }, svg("path", { d: text }), dot, svg("title", {}, one.label));
}

function axes(asked, { xs, ys, isLog, place, y, width }) {
  const marks = Array.from({ length: Y_TICKS }, (_, at) => at / (Y_TICKS - 1));
  const value = (part) => (isLog ? 10 ** between(ys.map(Math.log10), part) : between(ys, part));
  return [
    marks.map((part) => svg("g", { class: "grid" },
      svg("path", { d: `M${LEFT} ${y(value(part)).toFixed(1)}H${width - RIGHT}` }),
      svg("text", { x: LEFT - 6, y: y(value(part)) + 4, "text-anchor": "end" }, asked.yText(value(part))))),
    [0, 0.5, 1].map((part) =>
      svg("text", { class: "axis", x: place.x(between(xs, part)), y: HEIGHT - 6, "text-anchor": ["start", "middle", "end"][part * 2] },
        `${asked.xText(between(xs, part))}${part === 1 && asked.xName ? ` ${asked.xName}` : ""}`)),
  ];
}

function legend(series) {
  if (series.length < 2) return null;
  return h("figcaption", { class: "legend" }, series.map((one, index) =>
    h("span", {}, svg("svg", { width: 26, height: 8, "aria-hidden": "true" }, svg("g", { class: `line line-${index % 4}` }, svg("path", { d: "M0 4H26" }))), ` ${one.label}`)));
}

function said(asked, series) {
  const last = series.at(-1);
  const [x, y] = last.points.at(-1);
  const first = series[0].points[0];
  return `${asked.title}: from ${asked.yText(first[1])} at ${asked.xText(first[0])} to ${asked.yText(y)} at ${asked.xText(x)}`;
}

function extent(series, at) {
  let [least, most] = [Infinity, -Infinity];
  for (const one of series) {
    for (const point of one.points) {
      least = Math.min(least, point[at]);
      most = Math.max(most, point[at]);
    }
  }
  return least === most ? [least - (Math.abs(least) || 1) * 0.05, most + (Math.abs(most) || 1) * 0.05] : [least, most];
}

function scale([from, to], begin, end) {
  return (value) => begin + ((value - from) / (to - from)) * (end - begin);
}

function between([from, to], part) {
  return from + (to - from) * part;
}

export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)}k`;
  if (size >= 100) return value.toFixed(0);
  return size === 0 ? "0" : String(Number(value.toPrecision(3)));
}

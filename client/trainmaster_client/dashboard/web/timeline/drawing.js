// The timeline as SVG: one drawing a track, an axis above them. Text is set as text, colours come from classes.

import { svg } from "../dom.js";
import { banded, drawnBars, endKind } from "./tracks.js";
import { axisMarks } from "./windows.js";

export const GUTTER = 30;
const CHARACTER = 7;
const WIDE_CHARACTER = 14;
const FIRST_WIDE = 0x2e80; // of Unicode: from here on letters and signs fill a square
const BOLD_CHARACTER = 7.8;
const WIDTH_OF_A_MARK = 18; // pixels; below it the sign of an end would hide its neighbours
const MOST_TRACK_HEIGHT = 360;
const AXIS_HEIGHT = 34;
const LANE = 20; // pixels of an expected start below the rows
const APART = 96; // pixels between marks, so that a date fits

// What all drawings of a page share: from an instant to pixels and back.
export function scaleOf(window, width) {
  const inner = Math.max(width - GUTTER, 1);
  const perMs = inner / (window.to - window.from);
  return {
    x: (at) => GUTTER + (at - window.from) * perMs,
    at: (x) => window.from + (x - GUTTER) / perMs,
    perMs,
  };
}

// Larger on the largest screens: `size` is how many pixels one of the drawing has.
function sheet(name, width, height, size) {
  const box = { width: width * size, height: height * size, viewBox: `0 0 ${width} ${height}` };
  return svg("svg", { class: name, ...box, "aria-hidden": "true", focusable: "false" });
}

export function drawAxis({ window, width, size, now, label }) {
  const { x } = scaleOf(window, width);
  const drawing = sheet("timeline-axis", width, AXIS_HEIGHT, size);
  let taken = -Infinity;
  for (const { at, isDay } of axisMarks(window, width - GUTTER, APART)) {
    drawing.append(svg("line", { class: isDay ? "mark day" : "mark", x1: x(at), x2: x(at), y1: 22, y2: AXIS_HEIGHT }));
    const text = label(at, isDay);
    const start = Math.max(x(at), GUTTER);
    const end = start + text.length * (isDay ? BOLD_CHARACTER : CHARACTER);
    if (start < taken || end > width) continue;
    taken = end + 8;
    drawing.append(svg("text", { class: isDay ? "mark-label day" : "mark-label", x: start, y: 16 }, text));
  }
  if (now <= window.to && now >= window.from) {
    drawing.append(svg("path", { class: "now-flag", d: `M${x(now) - 5} 22h10l-5 8z` }));
  }
  return drawing;
}

export function rowHeight(rows) {
  return Math.min(24, Math.max(4, Math.floor(MOST_TRACK_HEIGHT / Math.max(rows, 1))));
}

// The track's instances as rows, with what is waiting for them below. `ghosts`: `{name, from, to}` of expected starts.
export function drawTrack(track, { window, width, size, now, since, series, nameOf, ghosts = [], placed = [] }) {
  const { x } = scaleOf(window, width);
  const step = rowHeight(track.rows);
  const rowsHeight = track.rows * step;
  const ahead = ghosts.filter((one) => one.from <= window.to);
  const lanes = ghosts.length ? ahead.length + (ghosts.length > ahead.length || !ahead.length ? 1 : 0) : 0;
  const height = rowsHeight + (lanes ? lanes * LANE + 6 : 0) + 2;
  const drawing = sheet("timeline-track", width, height, size);
  const clip = { from: window.from, to: window.to, x, width };
  drawing.append(...grid(track, clip, step, rowsHeight));
  drawing.append(...loweredCapacity(track, clip, step, rowsHeight));
  const marks = document.createDocumentFragment();
  for (const one of drawnBars(track.warm, window, x, 2)) marks.append(warmBar(one, step));
  const labelled = new Set();
  for (const one of drawnBars(banded(track.bars), window, x)) attemptBar(marks, one, { clip, step, series, nameOf, labelled });
  drawing.append(marks);
  for (const one of placed) if (one.from <= window.to) drawing.append(...ghostBar(one, clip, one.first * step - 1, x(now), one.count * step - 2));
  if (since !== null && since > window.from) drawing.append(...unrecorded(since, clip, rowsHeight));
  if (lanes && now > window.from) {
    const room = Math.min(x(now), width) - GUTTER - 8;
    drawing.append(svg("text", { class: "ghost-title", x: GUTTER, y: rowsHeight + 18 }, clipped("expected starts, half to 90 % sure", room)));
  }
  ahead.forEach((ghost, index) => drawing.append(...ghostBar(ghost, clip, rowsHeight + 6 + index * LANE, x(now))));
  if (lanes > ahead.length) {
    const later = `${ghosts.length - ahead.length} more later`;
    drawing.append(svg("text", { class: "ghost-label", x: width - 6, y: rowsHeight + 18 + ahead.length * LANE, "text-anchor": "end" }, later));
  }
  if (now >= window.from && now <= window.to) {
    drawing.append(svg("line", { class: "now-line", x1: x(now), x2: x(now), y1: 0, y2: height }));
  }
  return drawing;
}

function* grid(track, { x, from, to, width }, step, height) {
  yield svg("rect", { class: "rows", x: GUTTER, y: 0, width: Math.max(width - GUTTER, 0), height });
  for (const { at, isDay } of axisMarks({ from, to }, width - GUTTER, APART)) {
    yield svg("line", { class: isDay ? "gridline day" : "gridline", x1: x(at), x2: x(at), y1: 0, y2: height });
  }
  const every = Math.max(1, Math.ceil(14 / step));
  for (let row = 0; row < track.rows; row += every) {
    yield svg("text", { class: "row-label", x: GUTTER - 6, y: row * step + Math.min(step, 24) / 2 + 4 }, `${row + 1}`);
    if (step >= 8 && row) yield svg("line", { class: "row-line", x1: GUTTER, x2: width, y1: row * step, y2: row * step });
  }
}

// The capacity as a line; rows above it are hatched while it is lower than it was.
function* loweredCapacity(track, { x, from, to }, step, height) {
  let before = null;
  for (const one of track.steps) {
    if (one.to <= from || one.from >= to) continue;
    const left = x(Math.max(one.from, from));
    const right = x(Math.min(one.to, to));
    const y = one.capacity * step;
    if (y < height) {
      yield svg("rect", { class: "lowered", x: left, y, width: Math.max(right - left, 0), height: height - y });
    }
    if (before !== null && before !== y) {
      yield svg("line", { class: "capacity", x1: left, x2: left, y1: before, y2: y });
    }
    yield svg("line", { class: "capacity", x1: left, x2: right, y1: y, y2: y });
    before = y;
  }
}

function* unrecorded(since, { x, from, to }, height) {
  const width = x(Math.min(since, to)) - x(from);
  yield svg("rect", { class: "unrecorded", x: x(from), y: 0, width, height });
  if (width > 90 && height >= 16) yield svg("text", { class: "unrecorded-label", x: x(from) + 6, y: 14 }, "not recorded");
}

function warmBar({ x, width, first, count }, step) {
  return svg("rect", { class: "warm", x, y: first * step + step * 0.25, width, height: count * step - step * 0.5 });
}

function attemptBar(into, one, { clip, step, series, nameOf, labelled }) {
  const { bar, x, width, bars } = one;
  const { attempt } = bar;
  const y = one.first * step + (step >= 8 ? 1 : 0);
  const height = one.count * step - (step >= 8 ? 2 : 0.5);
  const { colour, isPatterned } = series.get(attempt.team) ?? { colour: 0, isPatterned: false };
  const kind = bars > 1 ? "several" : endKind(attempt);
  into.append(svg("rect", { class: `bar series-${one.isMixed ? "mixed" : colour} ${kind}`, x, y, width, height }));
  if (isPatterned) into.append(svg("rect", { class: "woven", x, y, width, height }));
  if (bars > 1) return;
  if (bar.tasks > 1) {
    bandSaid(into, { bar, x, y, width, height, step, colour, labelled });
    return;
  }
  const trained = Math.min(attempt.trained ?? attempt.to, clip.to);
  const start = Math.min(clip.x(Math.max(trained, clip.from)) - x, width);
  if (trained > clip.from && start >= 1) into.append(svg("rect", { class: "starting", x, y, width: start, height }));
  const begun = Math.max(start, 0);
  if (attempt.unknownSeconds > 0 && width - begun >= 1) {
    into.append(svg("rect", { class: "unseen", x: x + begun, y, width: width - begun, height }));
  }
  const isEndSeen = attempt.to <= clip.to;
  if (isEndSeen) into.append(...endMark(kind, x + width, y, Math.min(height, 22), width));
  const text = clipped(nameOf(attempt), width - (isEndSeen ? 16 : 8));
  if (text && step >= 12) {
    into.append(svg("text", { class: `bar-label on-${one.isMixed ? "mixed" : colour}`, x: x + 4, y: y + Math.min(height, 22) / 2 + 4 }, text));
  }
}

// A band has one name, on the first of its rows, and says how many failed.
function bandSaid(into, { bar, x, y, width, height, step, colour, labelled }) {
  if (labelled.has(bar.series) && !bar.failed) return;
  const name = labelled.has(bar.series) ? "" : `${bar.series}-… ${bar.tasks} tasks a row`;
  labelled.add(bar.series);
  const text = clipped([name, bar.failed && `${bar.failed} failed`].filter(Boolean).join(", "), width - 8);
  if (text && step >= 12) into.append(svg("text", { class: `bar-label on-${colour}`, x: x + 4, y: y + Math.min(height, 22) / 2 + 4 }, text));
}

// Shapes, so that an end is seen without its colour: a cross, a bolt's bar, a square; what lives has an arrow.
function endMark(kind, x, y, height, width) {
  const size = Math.min(height - 2, 9);
  if (size < 4 || width < WIDTH_OF_A_MARK) {
    const isLoud = kind === "preempted" || kind === "failed";
    return isLoud ? [svg("rect", { class: `end ${kind} thin`, x: x - 2, y, width: 2, height })] : [];
  }
  const top = y + (height - size) / 2;
  const left = x - size - 2;
  const cross = `M${left} ${top}l${size} ${size}m0 ${-size}l${-size} ${size}`;
  const shapes = {
    preempted: cross,
    failed: `M${left + size / 2} ${top}v${size * 0.6}m0 ${size * 0.22}v${size * 0.18}`,
    stopped: `M${left + 1} ${top + 1}h${size - 2}v${size - 2}h${2 - size}z`,
    live: `M${left + size * 0.4} ${top}l${size * 0.5} ${size / 2}l${-size * 0.5} ${size / 2}`,
  };
  if (!shapes[kind]) return [];
  return [
    svg("circle", { class: `end-ground ${kind}`, cx: left + size / 2, cy: top + size / 2, r: size / 2 + 2 }),
    svg("path", { class: `end ${kind}`, d: shapes[kind] }),
  ];
}

// A box from p50 to p90 with its name, which never lies over the past: behind the box, else within it or before it.
function* ghostBar({ name, from, to }, clip, y, now, height = 14) {
  const left = clip.x(Math.max(from, clip.from));
  const width = Math.max(clip.x(Math.min(to, clip.to)) - left, 3);
  yield svg("rect", { class: "ghost", x: left, y: y + 2, width, height, rx: 3 });
  const { x, text, anchor } = ghostLabel(name, { left, right: left + width }, { begin: Math.max(now, GUTTER), end: clip.width });
  if (text) yield svg("text", { class: "ghost-label", x, y: y + 6 + Math.min(height, 22) / 2, "text-anchor": anchor }, text);
}

// Where the name of a box goes between `begin` (now) and `end`, all in pixels.
export function ghostLabel(name, { left, right }, { begin, end }) {
  const needed = textWidth([...name]);
  if (end - right - 8 >= needed) return { x: right + 6, text: name, anchor: "start" };
  if (right - left - 8 >= needed) return { x: left + 4, text: name, anchor: "start" };
  if (left - begin - 8 >= needed) return { x: left - 6, text: name, anchor: "end" };
  const from = Math.max(left, begin) + 4;
  return { x: from, text: clipped(name, end - from - 4), anchor: "start" };
}

// Cut in its middle, as names of one series differ at their ends; empty where not even a few letters fit.
export function clipped(text, width) {
  const letters = [...text];
  if (textWidth(letters) <= width) return text;
  if (width < 4 * CHARACTER) return "";
  const half = (width - CHARACTER) / 2;
  return `${fitting(letters, half)}…${[...fitting(letters.reverse(), half)].reverse().join("")}`;
}

const letterWidth = (letter) => (letter.codePointAt(0) >= FIRST_WIDE ? WIDE_CHARACTER : CHARACTER);
const textWidth = (letters) => letters.reduce((sum, one) => sum + letterWidth(one), 0);

function fitting(letters, width) {
  let left = width;
  const end = letters.findIndex((one) => (left -= letterWidth(one)) < 0);
  return letters.slice(0, end < 0 ? letters.length : end).join("");
}

// Patterns that the classes fill with; once in a page, as they are found by their ids.
export function patterns() {
  const lines = (id, d, size) =>
    svg("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse" }, svg("path", { class: id, d }));
  return svg(
    "svg",
    { class: "timeline-patterns", width: 0, height: 0, "aria-hidden": "true", focusable: "false" },
    svg(
      "defs",
      {},
      lines("hatch-start", "M0 6L6 0M-1 1L1 -1M5 7L7 5", 6),
      lines("dots-unseen", "M1 1h2M5 5h2", 8),
      lines("hatch-lowered", "M0 0L8 8M-1 7L1 9M7 -1L9 1", 8),
      lines("hatch-unrecorded", "M0 10L10 0", 10),
      lines("dots-warm", "M1 2h2", 6),
      lines("weave", "M2 2h2v2h-2z", 8),
    ),
  );
}

export function outline(bar, window, width, step) {
  const { x } = scaleOf(window, width);
  const left = Math.max(x(bar.from), GUTTER);
  const right = Math.max(Math.min(x(bar.to), width), left + 3);
  return svg("rect", { class: "selected", x: left - 1, y: bar.first * step, width: right - left + 2, height: bar.count * step });
}

// Lines from the jobs that a job waits for to it, and from it to those that wait for it, over all tracks.

import { replace, svg } from "../dom.js";
import { scaleOf } from "./drawing.js";

const BEND = 40; // pixels by which a line leaves and reaches a bar level

// `jobs`: by name, those that run or wait; `drawn`: [{track, placed, svg}].
export function drawLinks(into, job, { jobs, drawn, window, width, size }) {
  replace(into);
  const pairs = job === null ? [] : linksOf(jobs, job);
  const origin = into.getBoundingClientRect();
  const point = (name, side) => {
    for (const { track, placed, svg: drawing } of drawn) {
      const boxes = [...track.bars.filter((bar) => bar.attempt.job === name), ...placed.filter((ghost) => ghost.job === name)];
      const box = side === "to" ? boxes[0] : boxes.at(-1);
      if (!box) continue;
      const { left, top, height } = drawing.getBoundingClientRect();
      const x = Math.min(Math.max(scaleOf(window, width).x(box[side]), 0), width);
      return { x: left - origin.left + x * size, y: top - origin.top + (height * (box.first + box.count / 2)) / Math.max(track.rows, 1) };
    }
    return null;
  };
  for (const [parent, child] of pairs) {
    const [from, to] = [point(parent, "to"), point(child, "from")];
    if (from && to) into.append(svg("path", { d: `M${from.x} ${from.y}C${from.x + BEND} ${from.y} ${to.x - BEND} ${to.y} ${to.x} ${to.y}` }));
  }
}

// `[[parent, child]]` of which a job is either.
export function linksOf(jobs, job) {
  return [...jobs.values()].flatMap(({ name, after }) => (after ?? []).filter((one) => one.job && (name === job || one.job === job)).map((one) => [one.job, name]));
}

// The part of time that a timeline shows: zoom, pan, and the marks of its axis in the reader's zone.

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const SPANS = [HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY];
const NARROWEST = HOUR;
const WIDEST = 30 * DAY;

export const AHEAD = 0.3; // of the window that is to come, where nobody says otherwise

// As wide as `span` allows, its end `ahead` of now: a part of what is to come is always there.
export function windowEndingNow(now, span, ahead = AHEAD) {
  const width = Math.min(Math.max(span, NARROWEST), WIDEST);
  return { from: now - width * (1 - ahead), to: now + width * ahead };
}

// Narrower or wider by `factor`, with `at` where it was.
export function zoomed(window, factor, at = (window.from + window.to) / 2) {
  const now = window.to - window.from;
  const span = Math.min(Math.max(now * factor, NARROWEST), WIDEST);
  const share = (at - window.from) / now;
  return { from: at - span * share, to: at + span * (1 - share) };
}

// Moved by a share of its width; never wholly into what is to come, nor into what no row is kept of.
export function panned(window, share, { now, earliest = -Infinity }) {
  const span = window.to - window.from;
  const most = now + span * 0.75;
  const to = Math.min(Math.max(window.to + share * span, earliest + span * 0.25), most);
  return { from: to - span, to };
}

// From one instant to another, in any order, as far as such a window may be shown.
export function brushed(one, other, now) {
  const span = Math.min(Math.max(Math.abs(other - one), NARROWEST), WIDEST);
  const middle = (one + other) / 2;
  const to = Math.min(middle + span / 2, now + span * 0.75);
  return { from: to - span, to };
}

// What has to be read for a window: wider, so that a small step needs no new call; at most what the API takes.
export function readWindow(window, now, most = 31 * DAY) {
  const span = window.to - window.from;
  const margin = Math.max(0, Math.min(span / 2, (most - span) / 2));
  const to = Math.min(window.to + margin, now);
  const from = Math.max(Math.min(window.from - margin, to - HOUR), to - most);
  return { from, to };
}

export const covers = (read, window, now) => read.from <= window.from && read.to >= Math.min(window.to, now - MINUTE);

const STEPS = [
  [5 * MINUTE, "minutes", 5], [15 * MINUTE, "minutes", 15], [30 * MINUTE, "minutes", 30],
  [HOUR, "hours", 1], [3 * HOUR, "hours", 3], [6 * HOUR, "hours", 6], [12 * HOUR, "hours", 12],
  [DAY, "days", 1], [2 * DAY, "days", 2], [7 * DAY, "days", 7],
];

// Marks of the axis, at whole hours and midnights of the reader's zone, also where the clock is changed.
//
// @returns {{at: number, isDay: boolean}[]} `isDay`: it is a midnight, so its label is a date.
export function axisMarks(window, width, apart = 64) {
  const most = Math.max(1, width / apart);
  const [, unit, count] = STEPS.find(([step]) => (window.to - window.from) / step <= most) ?? STEPS.at(-1);
  const marks = [];
  const at = new Date(window.from);
  at.setHours(0, 0, 0, 0);
  while (at.getTime() <= window.to) {
    const instant = at.getTime();
    if (instant >= window.from) marks.push({ at: instant, isDay: at.getHours() === 0 && at.getMinutes() === 0 });
    if (unit === "minutes") at.setTime(instant + count * MINUTE);
    else if (unit === "days") at.setDate(at.getDate() + count);
    else if (count === 1) at.setTime(instant + HOUR); // an hour may come twice
    else at.setHours(at.getHours() + count, 0, 0, 0);
  }
  return marks;
}

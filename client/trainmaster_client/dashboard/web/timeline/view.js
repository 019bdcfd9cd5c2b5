// The timeline as a reader uses it: drawn again at each zoom, pan and size; what is pointed at is said.

import { h, replace, svg } from "../dom.js";
import { clock, count, percent } from "../format.js";
import { barDetails, ghostsOf, nameOf } from "./details.js";
import { GUTTER, drawAxis, drawTrack, outline, patterns, rowHeight, scaleOf } from "./drawing.js";
import { drawLinks } from "./links.js";
import { attemptsTable, legend } from "./legend.js";
import { barAt, placedGhosts, teamSeries, usedShare } from "./tracks.js";
import { HOUR, brushed, covers, panned, zoomed } from "./windows.js";
import { paramsOf } from "./reading.js";

const SETTLED_MS = 250;
const LARGE_SCREEN = 2200; // pixels, as in style.css
const FINGER = 5; // pixels beside a bar that still mean it
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });

export class TimelineView {
  #chart = h("div", {
    class: "timeline", tabindex: "0", role: "application", "aria-label": "Timeline", "aria-describedby": "timeline-keys",
    "data-key": "timeline",
  });
  #tip = h("div", { class: "timeline-tip", hidden: true });
  #links = svg("svg", { class: "timeline-links", "aria-hidden": "true", focusable: "false" });
  #brush = h("div", { class: "timeline-brush", hidden: true });
  #chosen = h("div", { class: "timeline-chosen", "aria-live": "polite" });
  #legend = h("div", {});
  #table = h("details", { class: "timeline-table" }, h("summary", {}, "The same as a table"));
  #drawn = []; // [{track, svg}]
  #selected = null;
  #settling = null;
  #frame = null;
  #drag = null;
  #width = 0; // pixels for which it is drawn

  constructor() {
    this.element = h("div", { class: "timeline-whole" }, patterns(), this.#chart, this.#links, this.#brush, this.#tip, this.#chosen, this.#legend, this.#table);
    const listeners = {
      keydown: (event) => this.#pressed(event), wheel: (event) => this.#wheeled(event),
      pointerdown: (event) => this.#grabbed(event), pointermove: (event) => this.#moved(event),
      pointerup: (event) => this.#released(event), pointercancel: () => { this.#drag = null; this.#brush.hidden = true; },
      pointerleave: () => { this.#tip.hidden = true; this.#link(null); },
    };
    for (const [name, listen] of Object.entries(listeners)) this.#chart.addEventListener(name, listen);
    this.#table.addEventListener("toggle", () => this.#tabulate());
    new ResizeObserver(() => this.#chart.clientWidth === this.#width || this.#soon()).observe(this.#chart);
  }

  // `shown`: {tracks, attempts, teams, window, read, now, since, estimates: by pool}.
  update(shown, context) {
    const before = this.shown;
    [this.context, this.now] = [context, shown.now];
    this.shown = this.#drag || this.#settling ? { ...shown, window: before.window } : shown;
    if (before?.tracks === shown.tracks && isSameWindow(before.window, this.shown.window)) return;
    this.series = teamSeries(shown.attempts.map((one) => one.team), shown.teams);
    replace(this.#legend, legend(this.series));
    this.#draw();
    this.#tabulate();
  }

  zoom(factor, at) {
    this.#show(zoomed(this.shown.window, factor, at ?? this.#middle()));
  }

  pan(share) {
    this.#show(panned(this.shown.window, share, { now: this.now }));
  }

  // Around now while it is there to see: that is what is looked at.
  #middle() {
    const { from, to } = this.shown.window;
    return this.now > from && this.now < to ? this.now : (from + to) / 2;
  }

  #show(window) {
    this.shown = { ...this.shown, window };
    this.#soon();
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(), SETTLED_MS);
  }

  #settle() {
    this.#settling = null;
    const { window, read } = this.shown;
    this.context.setParams(paramsOf(window, this.now), { load: !covers(read, window, this.now) });
  }

  #soon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      if (this.shown) this.#draw();
    });
  }

  #draw() {
    this.#width = this.#chart.clientWidth;
    if (!this.#width) return;
    const { width, size } = this.#sheet();
    const { tracks, window, since, estimates, jobs } = this.shown;
    const shared = { window, width, size, now: this.now, since, series: this.series, nameOf };
    const axis = h("div", { class: "timeline-top" }, drawAxis({ ...shared, label: markLabel }));
    this.#drawn = tracks.map((track, index) => {
      const isLast = tracks[index + 1]?.pool !== track.pool;
      const waiting = ghostsOf(estimates[track.pool], jobs);
      const ghosts = isLast ? waiting.filter((one) => !isPlaced(one, tracks)) : [];
      const own = waiting.filter((one) => takesOf(track, one)).map((one) => ({ ...one, count: takesOf(track, one) }));
      const placed = placedGhosts(own, track, endsOf(jobs));
      return { track, placed, svg: drawTrack(track, { ...shared, ghosts, placed }) };
    });
    const parts = this.#drawn.map((one) => h("section", {}, this.#heading(one), one.svg));
    replace(this.#chart, axis, parts);
    this.#outline();
  }

  #sheet() {
    const size = innerWidth >= LARGE_SCREEN ? 1.4 : 1;
    return { size, width: this.#chart.clientWidth / size };
  }

  #heading({ track, placed }) {
    const later = new Set(placed.filter((one) => one.from > this.shown.window.to).map((one) => one.name)).size;
    const share = usedShare(track, this.shown.window, this.now);
    const spot = track.capacityType === "spot" ? " spot" : "";
    const used = share === null ? "" : `, ${percent(share)} used in what is shown`;
    return h("h2", { class: "track-name" },
      h("bdi", {}, track.pool), " ", h("span", { class: "dim" }, `${track.type}${spot}, ${count(track.rows)} ${track.rows === 1 ? "instance" : "instances"}${used}${later ? `, ${count(later)} more start later` : ""}`));
  }

  // The bar below a pointer, or null.
  #barAt(event) {
    const svg = event.target.closest?.("svg.timeline-track");
    const found = this.#drawn.find((one) => one.svg === svg);
    if (!found) return null;
    const { left, top } = svg.getBoundingClientRect();
    const { width, size } = this.#sheet();
    const scale = scaleOf(this.shown.window, width);
    const row = Math.floor((event.clientY - top) / size / rowHeight(found.track.rows));
    return barAt(found.track, row, scale.at((event.clientX - left) / size), FINGER / scale.perMs);
  }

  #moved(event) {
    if (this.#drag) {
      const share = (this.#drag.x - event.clientX) / Math.max(this.#chart.clientWidth - GUTTER, 1);
      if (Math.abs(this.#drag.x - event.clientX) > FINGER) this.#drag.isMoved = true;
      if (this.#drag.isBrush) this.#markBrush(event.clientX);
      else if (this.#drag.isMoved) this.#show(panned(this.#drag.window, share, { now: this.now }));
      this.#tip.hidden = true;
      return;
    }
    const bar = this.#barAt(event);
    this.#tip.hidden = !bar;
    this.#link(bar);
    if (!bar) return;
    replace(this.#tip, said(barDetails(bar, this.now)));
    const [width, height] = [this.#tip.offsetWidth, this.#tip.offsetHeight];
    const beside = event.clientX + 14 + width > innerWidth ? event.clientX - width - 14 : event.clientX + 14;
    this.#tip.style.setProperty("left", `${Math.max(beside, 4)}px`);
    this.#tip.style.setProperty("top", `${Math.max(Math.min(event.clientY + 14, innerHeight - height - 8), 4)}px`);
  }

  #grabbed(event) {
    if (event.button !== 0) return;
    this.#drag = { x: event.clientX, window: this.shown.window, isMoved: false, isBrush: event.shiftKey };
    this.#chart.setPointerCapture(event.pointerId);
  }

  #released(event) {
    const drag = this.#drag;
    this.#drag = null;
    this.#brush.hidden = true;
    if (drag?.isBrush && drag.isMoved) this.#show(brushed(this.#instantAt(drag.x), this.#instantAt(event.clientX), this.now));
    if (drag?.isMoved) return;
    const under = document.elementFromPoint(event.clientX, event.clientY);
    this.#select(under ? this.#barAt({ target: under, clientX: event.clientX, clientY: event.clientY }) : null);
  }

  #instantAt(clientX) {
    const { left } = this.#chart.getBoundingClientRect();
    const { width, size } = this.#sheet();
    return scaleOf(this.shown.window, width).at((clientX - left) / size);
  }

  #markBrush(clientX) {
    const from = this.#brush.parentElement.getBoundingClientRect().left;
    this.#brush.hidden = false;
    this.#brush.style.setProperty("--left", `${Math.min(this.#drag.x, clientX) - from}px`);
    this.#brush.style.setProperty("--wide", `${Math.abs(clientX - this.#drag.x)}px`);
    this.#brush.style.setProperty("--high", `${this.#chart.offsetHeight}px`);
  }

  #wheeled(event) {
    if (event.ctrlKey || event.metaKey) {
      this.zoom(1.0015 ** event.deltaY, this.#instantAt(event.clientX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.pan((event.shiftKey ? event.deltaY : event.deltaX) / this.#chart.clientWidth);
    } else return;
    event.preventDefault();
  }

  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      ArrowDown: () => this.#step(1), ArrowUp: () => this.#step(-1),
      Escape: () => this.#select(null), Enter: () => this.#open(),
      End: () => this.context.setParams({ to: null, ahead: null }),
    };
    if (!acts[event.key]) return;
    acts[event.key]();
    event.preventDefault();
  }

  // To the attempt after or before the chosen one in time, of those that are shown.
  #step(by) {
    const { window, tracks } = this.shown;
    const bars = tracks.flatMap((one) => one.bars).filter((one) => one.to > window.from && one.from < window.to);
    bars.sort((one, other) => one.from - other.from || one.to - other.to);
    if (!bars.length) return;
    const index = bars.findIndex((one) => isSame(one, this.#selected));
    const next = index < 0 ? (by > 0 ? 0 : bars.length - 1) : Math.min(Math.max(index + by, 0), bars.length - 1);
    this.#select(bars[next], `${next + 1} of ${bars.length}: `);
  }

  #select(bar, where = "") {
    this.#selected = bar;
    this.#outline();
    this.#link(bar);
    if (!bar) return void replace(this.#chosen);
    const details = barDetails(bar, this.now);
    const link = details.job && h("a", { href: this.context.hashOf("jobs", { name: details.job }) }, "Open the job");
    replace(this.#chosen, h("div", { class: "panel" }, h("span", { class: "quiet" }, where), said(details), link));
  }

  #open() {
    const job = this.#selected?.attempt?.job;
    if (job) this.context.navigate(this.context.hashOf("jobs", { name: job }));
  }

  // What the bar's job waits for, and what waits for it.
  #link(bar) {
    drawLinks(this.#links, bar?.attempt?.job ?? null, { jobs: this.shown.jobs, drawn: this.#drawn, window: this.shown.window, ...this.#sheet() });
  }

  #outline() {
    for (const { track, svg } of this.#drawn) {
      svg.querySelector(".selected")?.remove();
      const bar = [...track.bars, ...track.warm].find((one) => isSame(one, this.#selected));
      if (bar) svg.append(outline(bar, this.shown.window, this.#sheet().width, rowHeight(track.rows)));
    }
  }

  #tabulate() {
    if (!this.#table.open || !this.shown) return;
    const { window, attempts } = this.shown;
    const within = attempts.filter((one) => one.to > window.from && one.from < window.to);
    replace(this.#table, this.#table.firstElementChild, attemptsTable(within, this.context));
  }
}

// How many rows of a track an expected start takes; 0: none, or nobody knows.
const takesOf = (track, { takes, capacityType }) => (takes && capacityType === track.capacityType ? Math.min(takes[track.type] ?? 0, track.rows) : 0);
const isPlaced = (ghost, tracks) => tracks.some((track) => takesOf(track, ghost) > 0);
const endsOf = (jobs) => new Map([...jobs].filter(([, job]) => job.ends_by).map(([name, job]) => [name, Date.parse(job.ends_by)]));

const isSameWindow = (one, other) => one.from === other.from && one.to === other.to;

// Of a look before, too: data are read again, so bars are other objects.
function isSame(one, other) {
  if (!other || Boolean(one.attempt) !== Boolean(other.attempt) || one.from !== other.from || one.first !== other.first) return false;
  return one.attempt?.job === other.attempt?.job && one.attempt?.attempt === other.attempt?.attempt;
}

function said({ title, facts }) {
  return [
    h("p", { class: "name" }, h("b", {}, h("bdi", {}, title))),
    h("dl", { class: "facts" }, facts.map(([name, text]) => [h("dt", {}, name), h("dd", {}, h("bdi", {}, text))])),
  ];
}

const markLabel = (at, isDay) => (isDay ? day.format(at) : clock(new Date(at)).slice(-5));

export const spanSaid = (ms) => (ms >= 48 * HOUR ? `${Math.round(ms / HOUR / 24)} d` : `${Math.round((ms / HOUR) * 10) / 10} h`);

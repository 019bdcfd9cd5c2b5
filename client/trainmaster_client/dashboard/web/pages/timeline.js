// Timeline: one row per instance, what ran on it, who preempted whom, and what is expected to start.

import { h, replace } from "../dom.js";
import { clock } from "../format.js";
import { readPools, windowOf } from "../timeline/reading.js";
import { packedTracks, readTimeline } from "../timeline/tracks.js";
import { TimelineView, spanSaid } from "../timeline/view.js";
import { HOUR, SPANS } from "../timeline/windows.js";

export const page = {
  title: "Timeline",
  refreshSeconds: 5,
  load: readPools,

  render(root, data, context) {
    const { state } = context;
    if (!state.view) {
      state.view = new TimelineView();
      state.top = h("div", {});
      state.note = h("div", {});
      replace(root, h("h1", {}, page.title), state.top, state.note, state.view.element);
    }
    replace(state.top, filters(data, context));
    const shown = shownOf(data, context);
    replace(state.note, ...notes(data, shown));
    state.view.element.hidden = !shown.tracks.length;
    state.view.update(shown, context);
  },
};

// Packed again where there is something new: another answer, or now has moved by what can be seen.
function shownOf(data, { params, state, now: date }) {
  const now = date.getTime();
  const window = windowOf(params, now);
  const isStill = state.packed?.answers === data.answers && now - state.packed.now < (window.to - window.from) / 2000;
  if (!isStill) state.packed = { answers: data.answers, now, ...packed(data, now) };
  return { ...state.packed, window: isStill ? windowOf(params, state.packed.now) : window };
}

function packed(data, now) {
  const timelines = data.answers.filter((one) => one.timeline).map((one) => readTimeline(one.timeline, now));
  const sinces = timelines.map((one) => one.since ?? now); // null: nothing was written yet
  return {
    tracks: timelines.flatMap((one) => packedTracks(one, now)),
    attempts: timelines.flatMap((one) => one.attempts),
    unread: timelines.reduce((sum, one) => sum + one.unread, 0),
    read: data.read,
    since: sinces.length ? Math.max(...sinces) : null,
    teams: data.teams,
    jobs: new Map(data.answers.flatMap(({ jobs }) => jobs.filter((one) => one.name).map((one) => [one.name, one]))),
    estimates: Object.fromEntries(data.answers.map(({ pool, estimates }) => [pool, estimates])),
  };
}

function filters({ names, chosen }, context) {
  const { state, params, setParams } = context;
  const window = windowOf(params, context.now.getTime());
  const all = names.length > 1 ? [h("option", { value: "*", selected: chosen.length > 1 }, "all pools")] : [];
  const pools = names.map((name) => h("option", { value: name, selected: chosen.length === 1 && chosen[0] === name }, name));
  const spans = SPANS.map((span) =>
    h("button", {
      type: "button",
      "data-key": `span-${span}`,
      "aria-pressed": String(Math.abs(window.to - window.from - span) < HOUR / 10),
      onclick: () => setParams({ span: String(span / HOUR) }),
    }, spanSaid(span)),
  );
  const move = (text, label, act) =>
    h("button", { type: "button", "data-key": label, "aria-label": label, title: label, onclick: act }, text);
  return [
    h("div", { class: "filters" },
      h("label", {}, "Pool", h("select", { "data-key": "pool", onchange: (event) => setParams({ pool: event.target.value }) }, all, pools)),
      h("div", { class: "buttons", role: "group", "aria-label": "How much time is shown" }, spans),
      h("div", { class: "buttons", role: "group", "aria-label": "Move in time" },
        move("◂", "Earlier", () => state.view.pan(-0.5)),
        move("▸", "Later", () => state.view.pan(0.5)),
        move("+", "Closer", () => state.view.zoom(0.5)),
        move("−", "Wider", () => state.view.zoom(2)),
        h("button", { type: "button", "data-key": "now", disabled: !params.to, onclick: () => setParams({ to: null, ahead: null }) }, "Now"))),
    h("p", { class: "note", id: "timeline-keys" },
      "Drag or ← → to move, + −, Ctrl and the wheel, or Shift and drag to zoom, ↑ ↓ from attempt to attempt, Enter opens the job."),
  ];
}

function* notes(data, shown) {
  if (!data.answers.length) {
    yield h("p", { class: "state" }, "The policy has no pools, so nothing can run.");
  } else if (data.answers.every((one) => one.timeline === null)) {
    yield h("p", { class: "state" }, "This stack is older than this page: it keeps no timeline. Deploy the newer release to have one.");
  } else if (!shown.attempts.length) {
    yield h("p", { class: "state" }, "Nothing ran in this time.");
  }
  if (shown.since !== null && shown.since > shown.window.from) {
    yield h("p", { class: "note" }, `Recorded since ${clock(new Date(shown.since))}; what runs now is complete.`);
  }
  if (shown.unread) yield h("p", { class: "warning" }, `${shown.unread} rows cannot be understood by this page and are left out.`);
}

// What the signs of the timeline mean, and the same attempts as a table.

import { h, svg } from "../dom.js";
import { clock, duration, instances } from "../format.js";
import { cardTable } from "../plain_table.js";
import { endSaid, lossSaid, nameOf } from "./details.js";

const SIGNS = [
  ["start-up", () => [ground("bar series-7"), svg("rect", { class: "starting", ...BOX })]],
  ["preempted", () => [ground("bar series-7"), ...endSign("preempted", "M13 4l8 8m0-8l-8 8")]],
  ["failed", () => [ground("bar series-7"), ...endSign("failed", "M17 4v5m0 2v1.5")]],
  ["stopped", () => [ground("bar series-7"), ...endSign("stopped", "M14 5h6v6h-6z")]],
  ["runs", () => [ground("bar series-7"), ...endSign("live", "M15 4l4 4l-4 4")]],
  ["trained, no checkpoint seen", () => [ground("bar series-7"), svg("rect", { class: "unseen", ...BOX })]],
  ["warm pool", () => [svg("rect", { class: "warm", ...BOX, y: 4, height: 8 })]],
  ["lowered capacity", () => [svg("rect", { class: "lowered", ...BOX })]],
  ["not recorded", () => [svg("rect", { class: "unrecorded", ...BOX })]],
  ["expected start, half to 90 % sure", () => [svg("rect", { class: "ghost", ...BOX, y: 3, height: 10 })]],
];
const BOX = { x: 0, y: 0, width: 26, height: 16 };

const ground = (name) => svg("rect", { class: name, ...BOX });
const endSign = (kind, d) => [
  svg("circle", { class: `end-ground ${kind}`, cx: 17, cy: 8, r: 6 }),
  svg("path", { class: `end ${kind}`, d }),
];
const sign = (...shapes) => svg("svg", { class: "sign", width: 26, height: 16, "aria-hidden": "true" }, shapes);

export function legend(series) {
  const teams = [...series].map(([team, { colour, isPatterned }]) =>
    h("li", {}, sign(ground(`bar series-${colour}`), isPatterned && svg("rect", { class: "woven", ...BOX })), h("bdi", { class: "clip" }, team)),
  );
  const signs = SIGNS.map(([what, shapes]) => h("li", {}, sign(...shapes()), what));
  return h("div", { class: "timeline-legend" },
    teams.length ? h("ul", { "aria-label": "Colours of the teams" }, teams) : null,
    h("ul", { "aria-label": "Signs" }, signs));
}

const ROWS_AT_ONCE = 200;
const HEAD = ["from", "job", "team", "pool", "instances", "took", "end", "lost"];

// The attempts of a window, the latest first; made when it is opened, as most readers never do.
export function attemptsTable(attempts, { hashOf }, most = ROWS_AT_ONCE) {
  const latest = [...attempts].sort((one, other) => other.from - one.from);
  const rows = latest.slice(0, most).map((one) =>
    h("tr", {}, [
      h("td", {}, clock(new Date(one.from))),
      h("td", { class: "name" }, one.job ? h("a", { href: hashOf("jobs", { name: one.job }) }, h("bdi", {}, one.job)) : nameOf(one)),
      h("td", { class: "name" }, h("bdi", {}, one.team)),
      h("td", { class: "name" }, h("bdi", {}, one.pool)),
      h("td", {}, instances(one.instances, one.capacityType)),
      h("td", { class: "number" }, duration((one.to - one.from) / 1000)),
      h("td", { class: "name" }, endSaid(one)),
      h("td", {}, one.isLive ? "" : lossSaid(one)),
    ]),
  );
  const more = latest.length - rows.length;
  return cardTable("Attempts as a table",
    h("table", {},
      h("caption", {}, more > 0 ? `The latest ${rows.length} of ${latest.length} attempts; a narrower window has fewer.` : `${latest.length} attempts`),
      h("thead", {}, h("tr", {}, HEAD.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows)));
}

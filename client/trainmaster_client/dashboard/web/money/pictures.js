// Pictures of the money page: spending by day, and how full a pool is by hour of the week.

import { h, svg } from "../dom.js";
import { percent, usd } from "../format.js";
import { scrolling } from "../plain_table.js";
import { monthBounds } from "./figures.js";
import { RULE, adviceOn, adviceText, weekUse } from "./week_use.js";

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const HEIGHT = 120;
const NARROWEST_BAR = 11; // a month fits on a phone, so that its newest days are in sight
const WIDEST = 1400; // px of the picture
const FRAME = 2; // px of the lines at its sides
const HEAD = 20; // above the bars, for what the most expensive day cost
const WHITE_ON = 0.71; // of the colour of a full cell: from here on white is read better than black

// One bar a day of the month; days to come are dashed at what a day has cost so far. `width`: px that there are.
export function daysPicture(days, month, now, forecast, width = 0) {
  const { from, to } = monthBounds(month);
  const spent = new Map(days.map((one) => [String(one.key).slice(0, 10), one.usd ?? 0]));
  const count = Math.round((to - from) / 86_400_000);
  const bar = Math.max(NARROWEST_BAR, Math.floor(Math.min(width - FRAME, WIDEST) / count));
  const most = Math.max(1, forecast?.perDay ?? 0, ...spent.values());
  const bars = Array.from({ length: count }, (_, index) => {
    const at = from + index * 86_400_000;
    const key = new Date(at).toISOString().slice(0, 10);
    const isAhead = at > now;
    const amount = isAhead ? (forecast?.perDay ?? 0) : (spent.get(key) ?? 0);
    const height = (amount / most) * HEIGHT;
    return svg("rect", { class: isAhead ? "day-ahead" : "day-spent", x: index * bar + 2, y: HEAD + HEIGHT - height, width: bar - 4, height },
      svg("title", {}, `${key}: ${usd(amount)}${isAhead ? " expected" : ""}`));
  });
  const labels = Array.from({ length: count }, (_, index) =>
    index % 5 === 0 ? svg("text", { x: index * bar + bar / 2, y: HEAD + HEIGHT + 16, "text-anchor": "middle" }, index + 1) : null);
  const said = `Spending by day of ${month}, at most ${usd(most)} a day. Grouped by day the table has the figures.`;
  return scrolling(said, svg("svg", { class: "days", width: count * bar, height: HEAD + HEIGHT + 22, role: "img", "aria-label": said }, bars, labels, topDay(spent, from, count, bar)));
}

// What the most expensive day cost, above its bar.
function topDay(spent, from, count, bar) {
  const [key, amount] = [...spent].sort((one, other) => other[1] - one[1])[0] ?? ["", 0];
  if (!(amount > 0)) return null;
  const middle = ((Date.parse(key) - from) / 86_400_000 + 0.5) * bar;
  const x = Math.min(Math.max(middle, 2 * bar), (count - 2) * bar);
  return svg("text", { x, y: HEAD - 6, "text-anchor": "middle" }, usd(amount));
}

// Each pool and type as a table of hours and days: figures, and colours that only repeat them.
export function weeksPicture(weeks) {
  const known = weeks.filter((one) => one.points !== null);
  if (weeks.length && !known.length) return [h("p", { class: "state" }, "This stack is older than this page: it keeps no history of its pools.")];
  const parts = known.flatMap(({ pool, points }) => weekUse(points).map((week) => weekPanel(pool, week)));
  if (!parts.length) return [h("p", { class: "state" }, "No use of a pool is recorded yet.")];
  return [h("p", { class: "note" }, `The mean share in use of each hour of the week, over the last four weeks. ${RULE}`), h("div", { class: "weeks" }, parts)];
}

function weekPanel(pool, week) {
  const judged = adviceOn(week);
  const title = `${pool}, ${week.type}${week.capacityType === "spot" ? " spot" : ""}`;
  const rows = Array.from({ length: 24 }, (_, hour) =>
    h("tr", {}, h("th", { scope: "row" }, String(hour).padStart(2, "0")), week.cells.map((day) => heatCell(day[hour]))));
  return h("section", { class: "panel week" },
    h("h3", { class: "name" }, h("bdi", {}, title)),
    h("p", {}, h("b", { class: `advice-${judged.advice}` }, adviceText(judged)), " ", h("a", { href: "#/what-if" }, "What one more or fewer would have done")),
    h("table", { class: "heat" },
      h("caption", { class: "quiet" }, `Use of ${title} by hour of the week`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "h"), DAYS.map((day) => h("th", { scope: "col" }, day)))),
      h("tbody", {}, rows)));
}

function heatCell(cell) {
  if (!cell) return h("td", { class: "unknown" }, "–");
  const used = Math.round(100 * cell.used);
  const waits = cell.waiting > 0.01;
  const said = `${percent(cell.used)} used${waits ? ", jobs wait" : ""}`;
  return h("td", { class: cell.used > WHITE_ON ? "heat-dark" : null, title: said, vars: { "--used": `${Math.min(used, 100)}%` } },
    used, waits ? h("span", { class: "waits" }, "+", h("span", { class: "quiet" }, " jobs wait")) : null);
}

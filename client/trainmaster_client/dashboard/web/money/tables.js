// Tables of the money page: budgets, groups with what they were spent on, wastes with what helps.

import { h } from "../dom.js";
import { count, percent, usd } from "../format.js";
import { cardTable, heads } from "../plain_table.js";
import { causesOf, topWastes, usefulShare } from "./figures.js";

const ROWS_AT_ONCE = 200;
export const UNNAMED = "(not said)";
const keySaid = (key) => (key === null || key === "" ? UNNAMED : key);

const named = (text) => h("th", { scope: "row", class: "name" }, h("bdi", {}, text));
const figure = (text, more = "") => h("td", { class: `number ${more}` }, text);

export function budgetsTable(budgets) {
  const rows = budgets.map(({ team, limit, spent, reserved, warning }) =>
    h("tr", {},
      named(team),
      h("td", { class: "wide" }, budgetBar({ limit, spent, reserved })),
      figure(usd(spent)),
      figure(usd(reserved)),
      figure(usd(limit)),
      h("td", { class: "number" }, limit > 0 ? percent(spent / limit, spent / limit < 0.1 ? 1 : 0) : "", warning ? h("b", { class: "warn" }, " 80 % or more") : null)));
  return cardTable("Budgets", h("table", { class: "money" },
    heads([["Team"], ["Spent and reserved"], ["Spent", true], ["Reserved for what runs", true], ["Budget", true], ["Share", true]]),
    h("tbody", {}, rows)));
}

function budgetBar({ limit, spent, reserved }) {
  const share = (amount) => `${Math.min(100, (100 * amount) / Math.max(limit, spent + reserved, 1))}%`;
  return h("div", { class: "budget-bar", "aria-hidden": "true" },
    h("i", { class: "spent", vars: { "--share": share(spent) } }), h("i", { class: "reserved", vars: { "--share": share(reserved) } }));
}

// Sorted by what was spent, days by their date; `most`: so many rows.
export function groupsTable({ groups, groupBy, label, most = ROWS_AT_ONCE, showMore }) {
  const sorted = [...groups].sort((one, other) =>
    groupBy === "day" ? String(other.key).localeCompare(String(one.key)) : (other.usd ?? Infinity) - (one.usd ?? Infinity));
  const shown = sorted.slice(0, most);
  const causes = causesOf(groups.find((one) => one.by)).filter((one) => one.name !== "productive");
  const rows = shown.map((one) => groupRow(one, causes));
  const rest = sorted.length - shown.length;
  return [
    cardTable(`Spent by ${label}`, h("table", { class: "money" },
      heads([[label], ["USD", true], ["Instance-hours", true], ["Useful", true], ["What it was spent on"], ...causes.map((one) => [one.label, true])]),
      h("tbody", {}, rows))),
    rest > 0 ? h("p", {}, h("button", { type: "button", "data-key": "show-more", onclick: () => showMore(shown.length + ROWS_AT_ONCE) }, `Show more: ${count(rest)} are left`)) : null,
  ];
}

function groupRow(group, causes) {
  const own = causesOf(group);
  const shareOf = (name) => own.find((one) => one.name === name)?.share ?? null;
  return h("tr", {},
    named(keySaid(group.key)),
    figure(usd(group.usd)),
    figure(count(Math.round(group.instance_hours * 10) / 10)),
    figure(usefulText(usefulShare(group))),
    h("td", { class: "wide" }, causeBar(own)),
    causes.map(({ name }) => figure(shareOf(name) ? percent(shareOf(name), shareOf(name) < 0.1 ? 1 : 0) : "–", shareOf(name) ? "" : "dim nothing")));
}

// "18 to 91 %", or one figure where both ends are the same.
export function usefulText(share, digits = 0) {
  if (share === null) return "–";
  const [least, most] = [percent(share.least, digits), percent(share.most, digits)];
  return least === most ? least : `${least} to ${most}`;
}

function causeBar(causes) {
  const parts = causes.filter((one) => one.usd > 0);
  return h("div", { class: "cause-bar", "aria-hidden": "true" },
    parts.map(({ name, share, label }) => h("i", { class: `cause-${name}`, title: `${label} ${percent(share, 1)}`, vars: { "--share": `${100 * share}%` } })));
}

// `shares`: of one pool, from `sharesOf`.
export function sharesTable(pool, { halfLife, teams }) {
  const rows = teams.map(({ team, hours, share, used, times, points }) =>
    h("tr", {},
      named(team),
      figure(count(Math.round(hours * 10) / 10)),
      figure(share === null ? "no jobs" : percent(share), share === null ? "dim" : ""),
      figure(used === null ? "–" : percent(used)),
      figure(times === null ? "–" : times.toFixed(1)),
      figure(points === null ? "–" : `${points > 0 ? "+" : ""}${points.toFixed(1)}`)));
  return cardTable(`Shares of ${pool}`, h("table", { class: "money" },
    h("caption", {}, h("bdi", {}, pool), `: past use, of which half is forgotten in ${halfLife}`),
    heads([["Team"], ["Instance-hours", true], ["Share", true], ["Used", true], ["Times its share", true], ["Points", true]]),
    h("tbody", {}, rows)));
}

export function causeLegend(total) {
  const parts = causesOf(total).filter((one) => one.share > 0).map(({ name, label, share, usd: amount }) =>
    h("li", {}, h("i", { class: `swatch cause-${name}`, "aria-hidden": "true" }), `${label} ${usd(amount)} (${percent(share, 1)})`));
  return h("ul", { class: "causes", "aria-label": "What it was spent on" }, parts);
}

export function wastesTable(groups, label) {
  const wastes = topWastes(groups);
  if (!wastes.length) return h("p", { class: "state" }, "Nothing was wasted.");
  const rows = wastes.map(({ key, cause, usd: amount, remedy }) =>
    h("tr", {}, named(keySaid(key)), h("td", {}, cause), figure(usd(amount)), h("td", { class: "remedy" }, remedy)));
  return cardTable("Top wastes", h("table", { class: "money" },
    heads([[label], ["Lost to"], ["USD", true], ["What helps"]]), h("tbody", {}, rows)));
}

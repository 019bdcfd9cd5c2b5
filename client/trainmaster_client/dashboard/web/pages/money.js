// Money: what a month was spent on, by whom, what it will come to, what is wasted, and whether the pools fit.

import { h, replace } from "../dom.js";
import { count, percent, usd } from "../format.js";
import { csvOf, forecastOf, recentMonths, totalOf, usefulShare } from "../money/figures.js";
import { daysPicture, weeksPicture } from "../money/pictures.js";
import { GROUPINGS, readMoney } from "../money/reading.js";
import { budgetsTable, causeLegend, groupsTable, sharesTable, usefulText, wastesTable } from "../money/tables.js";

export const page = {
  title: "Money",
  refreshSeconds: 120,
  load: readMoney,

  render(root, data, context) {
    const total = totalOf(data);
    const now = context.now.getTime();
    const reserved = reservedOf(data);
    const forecast = forecastOf(total.usd, data.month, now, reserved);
    replace(
      root,
      h("h1", {}, page.title),
      filters(data, context),
      data.isCut ? h("p", { class: "warning" }, "There are more jobs than one answer reads: what belongs to the others is under (not said).") : null,
      data.isOlder ? h("p", { class: "warning" }, "This stack is older than this page: it has one team's month by job, and no other groups.") : null,
      h("p", {}, h("b", {}, sentence(data, total))),
      headline(data, { total, forecast }),
      unusedPlansSaid(data),
      budgets(data),
      groups(data, total, context),
      data.days.length && data.month ? [h("h2", {}, "By day"), daysPicture(data.days, data.month, now, forecast, root.clientWidth)] : null,
      h("h2", {}, "Top wastes"),
      wastesTable(data.groups, labelOf(data)),
      shares(data),
      h("h2", {}, "Buy, lend or leave?"),
      weeksPicture(data.weeks),
    );
  },
};

const labelOf = ({ groupBy }) => {
  const label = GROUPINGS[groupBy] ?? groupBy;
  return label[0].toUpperCase() + label.slice(1);
};

function filters(data, context) {
  const { setParams } = context;
  const choice = (label, key, options, chosen) =>
    h("label", {}, label, h("select", { "data-key": key, onchange: (event) => setParams({ [key]: event.target.value }) },
      options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
  const months = recentMonths(context.now.getTime());
  if (!months.includes(data.month)) months.push(data.month);
  const teams = [...(data.isAdmin ? [["*", "all teams"]] : []), ...data.teams.map((name) => [name, name])];
  if (data.team && !teams.some(([value]) => value === data.team)) teams.push([data.team, data.team]);
  return h("div", { class: "filters" },
    choice("Month (UTC)", "month", months.map((month) => [month, month]), data.month),
    choice("By", "by", Object.entries(GROUPINGS), data.groupBy),
    teams.length > 1 ? choice("Team", "team", teams, data.team) : null,
    h("button", { type: "button", "data-key": "csv", disabled: !data.groups.length, onclick: () => download(data) }, "CSV"));
}

function download({ month, groupBy, groups }) {
  const url = URL.createObjectURL(new Blob([csvOf(groupBy, groups)], { type: "text/csv" }));
  const link = h("a", { href: url, download: `trainmaster-usage-${month}-by-${groupBy}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Known where every team that is asked has a budget: only then the API says what is reserved.
function reservedOf({ budgets }) {
  if (!budgets.read || budgets.budgets.length < budgets.read) return null;
  return budgets.budgets.reduce((sum, one) => sum + (one.reserved ?? 0), 0);
}

// The month in one sentence, for who reads no further.
export function sentence({ month, groupBy, groups, budgets, running }, total) {
  if (!(total.usd > 0)) return total.usd === null ? `What ${month} cost is unknown.` : `Nothing is booked in ${month} yet${running?.jobs ? "; jobs run" : ""}.`;
  const limit = budgets.budgets.reduce((sum, one) => sum + one.limit, 0);
  const [top] = [...groups].sort((one, other) => (other.usd ?? 0) - (one.usd ?? 0));
  const most = groups.length > 1 && top.key && groupBy !== "day" ? `, most of it by ${top.key} (${percent((top.usd ?? 0) / total.usd)})` : "";
  return `${usd(total.usd)} were spent in ${month}${limit ? `, ${percent(total.usd / limit)} of the budgets` : ""}${most}; ${usefulText(usefulShare(total))} of it useful.`;
}

// Paid hours of training plans in which no job held an instance.
function unusedPlansSaid({ unusedPlans = [] }) {
  return unusedPlans.map(({ pool, paid_hours: paid, instance_hours: unused, usd: amount }) =>
    h("p", { class: "note" }, `Training plan of ${pool}: of ${paid === null ? "its" : count(Math.round(paid))} paid instance-hours ${unused === null ? "it is not known how many" : `${count(Math.round(unused))} (${usd(amount)})`} were unused.`));
}

function headline(data, { total, forecast }) {
  const limit = data.budgets.budgets.reduce((sum, one) => sum + one.limit, 0);
  const useful = usefulShare(total);
  const figures = [
    ["spent on ended attempts", usd(total.usd), limit ? `of ${usd(limit)} in budgets` : `${count(Math.round(total.instance_hours ?? 0))} instance-hours`],
    data.running?.jobs ? ["so far by what runs", usd(data.running.usd), `${count(data.running.jobs)} jobs; booked when they end`] : null,
    forecast ? ["forecast of the month", usd(forecast.usd), forecastSaid(forecast)] : null,
    ["useful", usefulText(useful, 1), usefulSaid(total)],
    total.saved_usd ? ["saved by spot", usd(total.saved_usd), "of the on-demand price"] : null,
    total.warm_saved_usd ? ["saved by warm starts", usd(total.warm_saved_usd), `of start-up; idle warm instances cost ${usd(total.by?.warm_pool ?? 0)}`] : null,
  ];
  return [
    h("div", { class: "figures" }, figures.filter(Boolean).map(([name, value, more]) =>
      h("div", { class: "panel figure" }, h("span", { class: "dim" }, name), h("b", {}, value), h("span", { class: "note" }, more)))),
    total.usd === null ? h("p", { class: "warning" }, `The cost is unknown, at least ${usd(total.known_usd ?? 0)}: a price is missing. The policy's key prices sets it.`) : null,
  ];
}

function usefulSaid(total) {
  const unknown = total.by?.unknown ?? 0;
  const kept = "training that a checkpoint or a result kept";
  return unknown > 0 ? `${kept}; of ${usd(unknown)} no checkpoint was seen` : kept;
}

function forecastSaid({ perDay, days, atMost }) {
  const most = atMost === null ? "Running jobs are booked when they end." : `With the worst case of what runs now ${usd(atMost)}.`;
  return `Linear: ${usd(perDay)} a day in ${days.toFixed(1)} days so far, for the days left too. ${most}`;
}

function budgets({ budgets: { budgets: found } }) {
  return found.length ? [h("h2", {}, "Budgets"), budgetsTable(found)] : null;
}

function shares({ weeks }) {
  const found = weeks.filter((one) => one.shares?.teams.length);
  return found.length ? [h("h2", {}, "Fair share"), found.map((one) => sharesTable(one.pool, one.shares))] : null;
}

function groups(data, total, { state, repaint }) {
  const label = labelOf(data);
  const title = h("h2", {}, `By ${label.toLowerCase()}`);
  if (!data.groups.length) return [title, h("p", { class: "state" }, `Nothing was spent in ${data.month}.`)];
  const showMore = (most) => {
    state.most = most;
    repaint();
  };
  return [title, causeLegend(total), groupsTable({ ...data, label, most: state.most, showMore })];
}

// The page Now: what each pool gives, who waits, your own jobs, and the queue in its order with its reasons.

import { pauseButton } from "../actions.js";
import { h, replace } from "../dom.js";
import { count, usd } from "../format.js";
import { columns, hrefOf, nameCell, stateCell } from "../job_cells.js";
import { Table } from "../table.js";

const MONEY_MS = 60_000;
const COLUMNS = ["position", "job", "team", "state", "pool", "instances", "priority", "age", "ran", "left", "starts_range", "short"];
let money = { at: -Infinity, team: "", usage: null };

export const page = {
  title: "Now",
  refreshSeconds: 5,

  // The first rows are shown while the rest of a long queue comes.
  async load(api, params, signal, early) {
    const options = { signal };
    const read = (part) => api.local("queue", { now: new Date().toISOString(), part }, options);
    if (early) {
      const first = await read("first");
      if (first.is_partial) early({ ...first, me: null, usage: null });
    }
    const [queue, me] = await Promise.all([read(null), api.me()]);
    return { ...queue, me, usage: await spent(api, me, options) };
  },

  render(root, data, context) {
    const parts = (context.state.parts ??= built(data, context));
    if (parts.pools.parentElement !== root) replace(root, Object.values(parts.elements));
    const isPaused = data.rows.some((row) => row.code === "paused");
    replace(parts.pause, pauseButton(context, isPaused, waits(data)));
    replace(parts.pools, notes(data, isPaused), data.pools.map(poolPanel));
    replace(parts.yours, yours(data));
    parts.show(data, context);
  },
};

// An admin of many teams has no one month.
async function spent(api, me, options) {
  const team = me?.teams?.length === 1 ? me.teams[0].name : "";
  if (!team) return null;
  if (performance.now() - money.at < MONEY_MS && money.team === team) return money.usage;
  const usage = await api.get("usage", { team }, options).catch(() => null);
  if (usage) money = { at: performance.now(), team, usage };
  return usage;
}

function waits(data) {
  return data.rows.filter((row) => row.phase === "waiting").length;
}

function built(data, context) {
  const find = h("input", { type: "search", "data-find": true, "data-key": "find", placeholder: "name, team, pool, reason", value: context.params.find ?? "" });
  const pools = h("div", { class: "pools" });
  const yours_ = h("div", {});
  const counted = h("span", { class: "dim", role: "status" });
  const pause = h("span", {});
  let latest = null;
  const table = new Table({
    caption: "The queue: running jobs, then waiting ones in their order",
    columns: columns(data.columns, COLUMNS),
    keyOf: (row) => row.key,
    open: (row) => hrefOf(row) && context.navigate(hrefOf(row)),
  });
  const filtered = () => {
    const wanted = find.value.trim().toLowerCase();
    const rows = wanted ? latest.filter((row) => row.searched.includes(wanted)) : latest;
    const all = latest.length === 1 ? "1 job" : `${count(latest.length)} jobs`;
    replace(counted, wanted ? `${count(rows.length)} of ${all}` : all);
    return table.update(rows);
  };
  find.addEventListener("input", filtered);
  const empty = h("p", { class: "state", hidden: true }, "The queue is empty. Ended jobs are on the page ", h("a", { href: "#/jobs?state=completed" }, "Jobs"), ".");
  const show = (data) => {
    latest = data.rows;
    empty.hidden = latest.length > 0;
    table.element.hidden = latest.length === 0;
    filtered();
  };
  const bar = h("div", { class: "row" }, h("h2", {}, "Queue"), h("label", { class: "beside" }, "Find (/) ", find), counted, h("span", { class: "grow" }), pause);
  const elements = { title: h("h1", {}, "Now"), pools, yours: yours_, bar, empty, table: table.element };
  return { elements, pools, yours: yours_, pause, show };
}

function notes(data, isPaused) {
  const found = [];
  if (isPaused) found.push("Starts and preemptions are paused by an admin. Running jobs continue.");
  if (!data.pools.length) found.push("No pools: an admin has to apply a policy.");
  if (!data.has_starts && !data.is_partial) found.push("This stack is older than the page: it does not say when all jobs are likely to start.");
  return found.map((text) => h("p", { class: "warning" }, text));
}

function poolPanel(pool) {
  return h("section", { class: "panel pool", "aria-label": `Pool ${pool.name}` },
    h("h2", {}, pool.name, " ", h("span", { class: "dim" }, [pool.waiting, pool.next_end].filter(Boolean).join(", "))),
    pool.gauges.map(gauge),
    pool.warnings.map((text) => h("p", { class: "note warn" }, text)),
  );
}

function gauge({ instance_type: type, capacity_type: kind, capacity, used, warm, free }) {
  const whole = Math.max(1, capacity, used + warm);
  const said = `${used} of ${capacity} used, ${warm} warm, ${free} free`;
  const share = (many) => `${(100 * many) / whole}%`;
  return h("div", { class: "gauge" },
    h("span", { class: "gauge-type" }, type, kind === "spot" ? " spot" : ""),
    h("span", { class: "gauge-bar", role: "img", "aria-label": said, vars: { "--used": share(used), "--warm": share(warm) } },
      h("span", { class: "gauge-used" }), h("span", { class: "gauge-warm" })),
    h("span", { class: "gauge-said" }, h("b", {}, `${used}/${capacity}`), ` used, ${warm} warm, ${free} free`),
  );
}

function yours({ rows, me, usage, is_partial: isPartial }) {
  if (isPartial) return h("p", { class: "note" }, "Reading the rest of the queue.");
  if (!me) return h("p", { class: "note" }, "This stack is older than the page: it does not say who you are, so your own jobs are not picked out.");
  const mine = rows.filter((row) => row.submitted_by === me.principal);
  const running = mine.filter((row) => row.phase === "live").length;
  const waiting = mine.length - running;
  const month = usage?.total ? [" This month your team spent ", h("b", {}, usd(usage.total.usd)), usage.budget ? ` of ${usd(usage.budget.limit)}` : "", "."] : "";
  const list = mine.slice(0, 12).map((row) => h("li", {}, nameCell(row), " ", stateCell(row.cells.state), " ", h("span", { class: "dim", title: row.cells.reason }, row.cells.short)));
  return h("section", { class: "panel", "aria-label": "Yours" },
    h("h2", {}, "Yours"),
    h("p", {}, h("b", {}, `${running} running, ${waiting} waiting.`), month, " ", h("a", { href: "#/jobs?mine=true" }, "All of yours")),
    list.length ? h("ul", { class: "mine" }, list) : null,
  );
}

// What-if: another number of instances, replayed over the last two weeks; who would have gained and who lost.

import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { cardTable, heads } from "../plain_table.js";
import { DAYS, PolicyReplay } from "../policy/replay.js";
import { forAdmins } from "./policy.js";

const KINDS = { capacity: "", spot_capacity: " spot" };
const MOST = 100_000;

export const page = {
  title: "What-if",
  refreshSeconds: 60,
  load: (api, params, signal) => forAdmins(api.get("policy", {}, { signal })),

  render(root, stored, context) {
    const { state } = context;
    if (!stored) return void replace(root, h("h1", {}, page.title), h("p", { class: "state" }, "Replays are for admins: they need the history of the jobs of all teams."));
    const document = stored.policy ?? stored;
    if (!state.replay) {
      state.wanted = {};
      state.choice = h("div", {});
      state.replay = new PolicyReplay(() => JSON.stringify(changed(document, state.wanted), null, 2), (id) => context.setParams({ replay: id }, { load: false }));
      if (context.params.replay) state.replay.resume(context.params.replay, context);
      replace(root, h("h1", {}, page.title), h("p", {}, `How would the last ${DAYS} days have gone with more or fewer instances? Change a number, then replay; nothing is put in force.`), state.choice, state.replay.element);
    }
    if (!state.choice.hasChildNodes()) replace(state.choice, choices(document, state));
    state.replay.update(context);
    return undefined;
  },
};

// `{key: count}` by `keyOf`: the document with these counts in place of its own; what is not in `wanted` stays.
export function changed(document, wanted) {
  const pools = (document.pools ?? []).map((pool) => {
    const counts = Object.keys(KINDS).filter((kind) => pool[kind]).map((kind) =>
      [kind, Object.fromEntries(Object.entries(pool[kind]).map(([type, many]) => [type, wanted[keyOf(pool.name, kind, type)] ?? many]))]);
    return { ...pool, ...Object.fromEntries(counts) };
  });
  return { ...document, pools };
}

export const keyOf = (pool, kind, type) => JSON.stringify([pool, kind, type]);

function choices({ pools = [] }, state) {
  const rows = pools.flatMap((pool) => Object.entries(KINDS).flatMap(([kind, said]) => Object.entries(pool[kind] ?? {}).filter(([, many]) => Number.isInteger(many)).map(([type, many]) => row({ pool: pool.name, key: keyOf(pool.name, kind, type), type: `${type}${said}`, many }, state))));
  if (!rows.length) return h("p", { class: "state" }, "The policy has no pools with a number of instances.");
  return [
    cardTable("Instances",
      h("table", {},
        heads(["Pool", "Instances", "In force", "What if", "At once"]),
        h("tbody", {}, rows))),
    h("p", { class: "note" }, "Quotas, calendars, order and rules: edit the document on the page ", h("a", { href: "#/policy" }, "Policy"), " and replay it there. A calendar's own numbers stay as they are."),
  ];
}

function row({ pool, key, type, many }, state) {
  const field = h("input", { type: "number", min: "0", max: String(MOST), step: "1", value: many, "data-key": `wanted-${key}`, "aria-label": `${type} in ${pool}`, oninput: () => set(field.value) });
  const set = (value) => (field.checkValidity() && value !== "" ? (state.wanted[key] = Number(value)) : delete state.wanted[key]);
  const atOnce = (by, text) => h("button", {
    type: "button", "data-key": `${text}-${key}`, "aria-label": `Replay with ${text} ${type} in ${pool}`, disabled: many + by < 0,
    onclick: () => { field.value = String(many + by); set(field.value); state.replay.start(); },
  }, text);
  return h("tr", {}, h("th", { scope: "row", class: "name" }, h("bdi", {}, pool)), h("td", {}, type), h("td", { class: "number" }, count(many)), h("td", {}, field), h("td", {}, h("div", { class: "buttons" }, atOnce(1, "one more"), atOnce(-1, "one fewer"))));
}

// Arrays: those that go on, then those that ended, with how far each is and one button for what failed.

import { orMissing } from "../api.js";
import { rerunButton } from "../arrays/rerun.js";
import { progress } from "../arrays/progress.js";
import { command } from "../copied.js";
import { h, replace } from "../dom.js";
import { clock, count, usd } from "../format.js";
import { cutName, stateCell } from "../job_cells.js";
import { Table } from "../table.js";

const ENDS = ["failed", "completed", "stopped"];

export const page = {
  title: "Arrays",
  refreshSeconds: 15,

  // `arrays` is null on a stack that knows none.
  async load(api, params, signal) {
    const read = (state) => orMissing(api.all("arrays", { state, mine: params.mine }, "arrays", { signal }));
    const answers = await Promise.all([null, ...ENDS].map(read));
    if (answers.some((one) => one === null)) return { arrays: null };
    const [live, ...ended] = answers.map((one) => one.arrays);
    return { arrays: [...live, ...ended.flat().sort((one, other) => String(other.ended_at).localeCompare(String(one.ended_at)))] };
  },

  render(root, { arrays }, context) {
    const parts = (context.state.parts ??= built(context));
    if (parts.table.element.parentElement !== root) replace(root, h("h1", {}, page.title), parts.top, parts.empty, parts.table.element);
    parts.context = context;
    replace(parts.empty, arrays === null ? h("p", { class: "state" }, "This stack is older than this page: it has no arrays.") : firstUse(context));
    parts.empty.hidden = Boolean(arrays?.length);
    parts.table.element.hidden = !arrays?.length;
    parts.table.update(arrays ?? []);
  },
};

function built(context) {
  const parts = { context, empty: h("div", { class: "panel first-use" }) };
  const mine = h("input", { type: "checkbox", "data-key": "mine", checked: context.params.mine === "true", onchange: () => context.setParams({ mine: mine.checked ? "true" : "" }) });
  parts.top = h("div", { class: "filters" }, h("label", { class: "check" }, mine, "mine"));
  parts.table = new Table({
    caption: "Arrays",
    columns: [
      { key: "job", title: "Array", cell: ({ name }) => cutName(name, { href: arrayHref(name), tabindex: "-1" }, "a"), sort: ({ name }) => name },
      { key: "team", title: "Team", cell: ({ team }) => team, sort: ({ team }) => team },
      { key: "where", title: "Pool", cell: ({ pool }) => pool, sort: ({ pool }) => pool },
      { key: "state", title: "State", cell: ({ state }) => stateCell(state), sort: ({ state }) => state },
      { key: "next", title: "Tasks", cell: ({ tasks }) => progress(tasks), sort: ({ tasks }) => tasks.total },
      { key: "submitted", title: "Submitted", cell: (array) => clock(array.submitted_at), sort: (array) => array.submitted_at },
      { key: "cost", title: "Cost", number: true, cell: (array) => usd(array.usd), sort: (array) => array.usd },
      { key: "short", title: "Failed", cell: (array) => (array.tasks.failed ? rerunButton(array, parts.context) ?? count(array.tasks.failed) : ""), sort: ({ tasks }) => tasks.failed },
    ],
    keyOf: ({ name, submitted_at: at }) => `${name} ${at}`,
    open: ({ name }) => context.navigate(arrayHref(name)),
  });
  return parts;
}

export const arrayHref = (name) => `#/arrays/${encodeURIComponent(name)}`;

function firstUse({ say }) {
  return [h("h2", {}, "No arrays"), h("p", { class: "dim" }, "A sweep is one line in the queue, however many tasks it has:"), command("trainmaster sweep request.json --grid lr=1e-4,3e-4 --grid batch=16,32", say)];
}

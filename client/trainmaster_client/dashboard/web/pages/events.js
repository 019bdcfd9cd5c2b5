// Events: what happened, newest first, as it happens.

import { h, keepingFocus, replace, withCode } from "../dom.js";
import { clockSeconds, count } from "../format.js";
import { KINDS, searched, sentences, weightOf } from "../events/feed.js";
import { SPANS, readEvents } from "../events/reading.js";

const ROWS_AT_ONCE = 200;
const WEIGHTS = { trouble: "Trouble", notice: "Notice", news: "" };

export const page = {
  title: "Events",
  refreshSeconds: 5,
  load: readEvents,

  render(root, data, context) {
    const { state } = context;
    if (!state.list) {
      state.filters = h("div", {});
      state.list = h("div", {});
      state.search = h("input", { type: "search", id: "events-search", "data-find": "", oninput: () => paint(state), autocomplete: "off" });
      replace(root, h("h1", {}, page.title), state.filters, state.list, recipe());
    }
    Object.assign(state, { data, context });
    if (!state.filters.contains(state.search)) replace(state.filters, filters(context, state.search));
    paint(state);
  },
};

function filters({ params, me, setParams }, search) {
  const choice = (label, key, options, chosen) =>
    h("label", {}, label, h("select", { "data-key": key, onchange: (event) => setParams({ [key]: event.target.value }) },
      options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
  const team = h("input", { "data-key": "team", value: params.team ?? "", list: "events-teams", size: "14", onchange: (event) => setParams({ team: event.target.value.trim() }) });
  return h("div", { class: "filters" },
    choice("Since", "since", Object.entries(SPANS), params.since ?? "24"),
    choice("Kind", "kind", [["", "all kinds"], ...KINDS.map((kind) => [kind, kind])], params.kind ?? ""),
    h("label", {}, "Team", team),
    h("datalist", { id: "events-teams" }, (me?.teams ?? []).map(({ name }) => h("option", { value: name }))),
    h("label", { for: "events-search" }, "Words", search));
}

function paint(state) {
  const { data, context, search } = state;
  const found = searched(data.events, search.value);
  const shown = found.slice(0, state.most ?? ROWS_AT_ONCE);
  keepingFocus(state.list, () => replace(state.list, summary(data, found, search.value), h("ol", { class: "feed" }, shown.map((one) => row(one, data, context))), more(found, shown, state)));
}

function summary(data, found, words) {
  if (data.isMissing) return h("p", { class: "state" }, "This stack is older than this page: it keeps no events. They still go out as mails and on EventBridge.");
  if (!data.events.length) return h("p", { class: "state" }, "Nothing happened in this time, as far as you may see.");
  if (!found.length) return h("p", { class: "state" }, `None of the ${count(data.events.length)} events matches.`);
  const some = words.trim() ? ` of ${count(data.events.length)}` : "";
  const cut = data.hasMore ? " There are older ones in this time: choose a kind or a team to see them." : "";
  return h("p", { class: "note" }, `${count(found.length)}${some} events, the newest first.${cut}`);
}

function more(found, shown, state) {
  if (shown.length === found.length) return null;
  const showMore = () => {
    state.most = shown.length + ROWS_AT_ONCE;
    paint(state);
  };
  return h("p", {}, h("button", { type: "button", "data-key": "show-more", onclick: showMore }, `Show more: ${count(found.length - shown.length)} are left`));
}

function row(event, { fresh }, { hashOf }) {
  const { what, why, todo } = sentences(event);
  const weight = weightOf(event.kind);
  const job = event.job ? h("a", { href: hashOf("jobs", { name: event.job }) }, h("bdi", {}, event.job)) : null;
  return h("li", { class: `${weight}${fresh.has(event) ? " fresh" : ""}` },
    h("time", { datetime: event.at }, clockSeconds(event.at)),
    h("span", { class: "kind" }, WEIGHTS[weight] ? h("span", { class: "quiet" }, `${WEIGHTS[weight]}: `) : null, event.kind),
    h("div", { class: "words" },
      h("div", { class: "name" }, job, job ? " " : "", h("span", { class: "dim" }, h("bdi", {}, event.team ?? ""))),
      h("div", {}, h("bdi", {}, withCode(what))),
      why ? h("div", { class: "dim" }, h("bdi", {}, withCode(why))) : null,
      todo ? h("div", { class: "note" }, h("bdi", {}, withCode(todo))) : null));
}

function recipe() {
  return h("p", { class: "note" }, "The same goes out by mail, and to Slack or Teams where a rule of EventBridge sends it there: the page Events of the documentation has the recipes.");
}

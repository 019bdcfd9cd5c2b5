// The last two weeks replayed under the policy as it is edited, beside the one in force: on the user's machine.

import { Trouble } from "../api.js";
import { h, replace } from "../dom.js";
import { plainTable } from "../plain_table.js";

const LOOK_MS = 1000;
export const DAYS = 14;

export class PolicyReplay {
  #buttons = h("div", { class: "row" });
  #answer = h("div", { "aria-live": "polite" });
  #id = null; // of the replay that runs, or whose result is shown
  #running = null; // as last heard of
  #textOf = () => "";
  #timer = null;

  #onstart = () => {};

  // `textOf` gives the text of the policy to replay; `onstart` gets the id of each replay that starts.
  constructor(textOf, onstart = () => {}) {
    [this.#textOf, this.#onstart] = [textOf, onstart];
    this.element = h("section", { "aria-labelledby": "policy-replay" },
      h("h2", { id: "policy-replay" }, "What if it had been in force?"),
      h("p", { class: "note" }, `The jobs of the last ${DAYS} days are replayed by the scheduler's own planner, under this document and under the policy in force. It runs on the machine of this dashboard and changes nothing.`),
      this.#buttons, this.#answer);
  }

  update(context) {
    this.context = context;
    this.#paint();
  }

  #paint() {
    const isRunning = this.#running !== null;
    replace(this.#buttons,
      h("button", { type: "button", "data-key": "replay", disabled: isRunning, onclick: () => this.start() }, `Replay the last ${DAYS} days`),
      isRunning ? h("button", { type: "button", "data-key": "cancel-replay", onclick: () => this.#cancel() }, "Cancel the replay") : null,
      isRunning ? progressShown(this.#running) : null);
  }

  // One that was started before, in another look at the page.
  resume(id, context) {
    [this.#id, this.context] = [id, context];
    return this.#asking(async () => this.#hear(await context.api.local(`replays/${id}`)));
  }

  start() {
    if (this.#running) return null;
    return this.#asking(async () => {
      this.#id = newId();
      replace(this.#answer);
      this.#onstart(this.#id);
      const headers = { "trainmaster-replay": "start", "trainmaster-policy": await packed(this.#textOf()) };
      this.#hear(await this.context.api.local(`replays/${this.#id}`, { now: new Date().toISOString() }, { headers }));
    });
  }

  #cancel() {
    return this.#asking(async () => this.#hear(await this.context.api.local(`replays/${this.#id}`, {}, { headers: { "trainmaster-replay": "cancel" } })));
  }

  #look() {
    if (!this.element.isConnected) return; // another page is shown; coming back makes a new editor
    this.#asking(async () => this.#hear(await this.context.api.local(`replays/${this.#id}`)));
  }

  #hear(replay) {
    clearTimeout(this.#timer);
    this.#running = replay.state === "running" ? replay : null;
    if (this.#running) this.#timer = setTimeout(() => this.#look(), LOOK_MS);
    else replace(this.#answer, outcomeShown(replay));
    this.#paint();
  }

  async #asking(act) {
    try {
      await act();
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      clearTimeout(this.#timer);
      this.#running = null;
      replace(this.#answer, h("p", { class: "state-error", role: "alert" }, trouble.detail));
      this.#paint();
    }
  }
}

function progressShown({ doing, share }) {
  const percent = share === null ? "" : ` ${Math.round(100 * share)} %`;
  return h("span", { class: "replay-progress" },
    h("progress", { max: "1", value: share, "aria-label": "Progress of the replay" }),
    h("span", { class: "state" }, doing, percent));
}

function outcomeShown({ id, state, error, result, has_report: hasReport, report_key: key }) {
  if (state === "cancelled") return h("p", { class: "state" }, "The replay was cancelled.");
  if (state === "failed") return h("p", { class: "state-error", role: "alert" }, error);
  return [
    h("h3", {}, "What would have been different"),
    result.notes.map((note) => h("p", { class: "note" }, h("bdi", {}, note))),
    h("ul", { class: "replay-summary" }, result.summary.map((line) => h("li", {}, h("bdi", {}, line)))),
    result.tables.map(({ title, columns, rows }) => [h("h3", {}, title), plainTable(title, columns, rows, { isNumber: true })]),
    hasReport ? reportLinks(`data/replays/${id}/report${key ? `?key=${key}` : ""}`) : null,
    result.not_in_model.length
      ? h("details", {}, h("summary", {}, "What is not in the model"), h("ul", {}, result.not_in_model.map((line) => h("li", {}, h("bdi", {}, line)))))
      : null,
  ];
}

function reportLinks(href) {
  return h("p", { class: "row" },
    h("a", { href, target: "_blank", rel: "noopener" }, "The whole report: plots, winners and losers, the timeline"),
    h("a", { href, download: "trainmaster-what-if.html" }, "Save it as a file to share"));
}

export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Deflated and in base64 for URLs: it travels in a header, since a reading dashboard takes no bodies.
export async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_");
}

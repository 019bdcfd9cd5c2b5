// The last revisions of the policy, each with what it changed against the one before; read when they are opened.

import { orMissing } from "../api.js";
import { h, replace } from "../dom.js";
import { clock } from "../format.js";
import { lineDiff } from "./changes.js";
import { differenceShown, textOf } from "./document.js";

const MOST = 10;

export class PolicyRevisions {
  #list = h("div", {}, h("p", { class: "note" }, "Reading the revisions."));
  #read = null; // the newest revision for which the list was made

  constructor() {
    this.element = h("details", { ontoggle: () => this.#show() }, h("summary", {}, `The last ${MOST} revisions`), this.#list);
  }

  update({ revision }, context) {
    [this.revision, this.context] = [revision, context];
    this.#show();
  }

  async #show() {
    if (!this.element.open || this.#read === this.revision) return;
    this.#read = this.revision;
    const numbers = Array.from({ length: Math.min(MOST + 1, this.revision) }, (_, back) => this.revision - back);
    const answers = await Promise.all(numbers.map((revision) => orMissing(this.context.api.get("policy", { revision })).catch(() => null)));
    replace(this.#list, answers.slice(0, MOST).map((one, index) => (one ? shown(one, answers[index + 1]) : null)));
  }
}

function shown(one, before) {
  const when = [one.put_at && `put in force ${clock(one.put_at)}`, one.put_by && `by ${one.put_by.split("/").pop()}`].filter(Boolean).join(" ");
  const areTexts = Boolean(one.text && before?.text);
  const lines = before ? lineDiff(textOf(before, areTexts), textOf(one, areTexts)) : null;
  const changed = lines?.filter(({ sign }) => sign === "+" || sign === "-").length;
  return h("details", {},
    h("summary", {}, `Revision ${one.revision}`, h("span", { class: "dim" }, `${when ? `, ${when}` : ""}${lines ? `: ${changed} lines differ` : ""}`)),
    lines?.length ? differenceShown(lines) : h("p", { class: "note" }, lines ? "The document is that of the revision before." : "The revision before it is not there."));
}

// The policy's text: shown, changed, replayed, tried, and put in force once its trial was seen and the revision typed.

import { Trouble } from "../api.js";
import { h, replace } from "../dom.js";
import { plainTable } from "../plain_table.js";
import { countsText, groupedChanges, lineDiff } from "./changes.js";
import { differenceShown, parsedPolicy, textOf } from "./document.js";
import { PolicyReplay } from "./replay.js";

const CHANGES_AT_ONCE = 100;

export class PolicyEditor {
  #text = h("textarea", { id: "policy-text", spellcheck: "false", autocomplete: "off", wrap: "off" });
  #shown = h("div", {});
  #answer = h("div", { "aria-live": "polite" });
  #stored = null; // {revision, text} as last read
  #from = null; // the same as it was when the editing began; null: nothing is edited
  #tried = null; // {text, document, groups, isTruncated, revision}
  #isBusy = false;
  #replay = new PolicyReplay(() => this.#text.value);

  constructor() {
    this.element = h("div", {}, this.#shown, this.#answer, this.#replay.element);
    this.#text.addEventListener("input", () => this.#paint());
  }

  update(policy, context) {
    this.context = context;
    this.#stored = { revision: policy.revision, text: textOf(policy) };
    this.#paint();
  }

  #paint() {
    const { session } = this.context;
    const label = h("h2", {}, "The document");
    this.#replay.element.hidden = !this.#from;
    if (this.#from) this.#replay.update(this.context);
    if (!this.#from) {
      const why = "The dashboard only reads: what you edit can be replayed over the last two weeks. To try and apply policies, start it with --allow-changes.";
      replace(this.#shown, label,
        h("p", {}, h("button", { type: "button", "data-key": "edit", onclick: () => this.#edit() }, "Edit")),
        session.changes ? null : h("p", { class: "note" }, why),
        this.#whole(this.#stored.text));
      return;
    }
    this.#top ??= h("div", {});
    this.#below ??= h("div", { class: "row" });
    replace(this.#top, this.#stored.revision === this.#from.revision ? null
      : h("p", { class: "warning" }, `Revision ${this.#stored.revision} came into force while you edit revision ${this.#from.revision}. Putting yours in force would undo it.`));
    replace(this.#below, this.#buttons());
    if (!this.#shown.contains(this.#text)) {
      replace(this.#shown, label, this.#top, h("label", { for: "policy-text" }, `Revision ${this.#from.revision}, as you edit it (YAML or JSON)`), this.#text, this.#below);
    }
  }

  // Folded until somebody wants it; it stays as it was when the page is read again.
  #whole(text) {
    this.#folded ??= h("details", {}, h("summary", {}, "Show it as a text"), h("pre", { class: "document", tabindex: "0" }));
    replace(this.#folded.lastElementChild, text);
    return this.#folded;
  }

  #folded = null;
  #top = null;
  #below = null;

  #buttons() {
    const isTried = this.#tried?.text === this.#text.value;
    const isSame = this.#text.value === this.#from.text;
    const discard = h("button", { type: "button", "data-key": "discard", disabled: this.#isBusy, onclick: () => this.#discard() }, "Discard");
    if (!this.context.session.changes) return [discard];
    return [
      h("button", { type: "button", class: "primary", "data-key": "try", disabled: this.#isBusy || isSame, onclick: () => this.#try() }, "Try (changes nothing)"),
      h("button", { type: "button", "data-key": "apply", disabled: this.#isBusy || !isTried, onclick: () => this.#confirm() }, "Put in force …"),
      discard,
      this.#isBusy ? h("span", { class: "state" }, "Asking the API.") : isTried || isSame ? null : h("span", { class: "note" }, "Try it first: what it would do to the jobs there are."),
    ];
  }

  #edit() {
    this.#from = this.#stored;
    this.#text.value = this.#stored.text;
    this.#paint();
    this.#text.focus();
  }

  #discard() {
    [this.#from, this.#tried] = [null, null];
    replace(this.#answer);
    this.#paint();
  }

  #try() {
    return this.#asking(async () => {
      const text = this.#text.value;
      const document = await parsedPolicy(this.context.api, text);
      const answer = await this.context.api.change("PUT", "policy?dry_run=true", { policy: document, text });
      const groups = groupedChanges(answer.changes);
      this.#tried = { text, document, groups, isTruncated: answer.truncated, revision: this.#stored.revision };
      replace(this.#answer, h("h2", {}, "What it would do"), this.#trial(answer, groups));
    });
  }

  #trial(answer, groups) {
    const lines = lineDiff(this.#from.text, this.#tried.text);
    return [
      h("p", {}, h("b", {}, countsText(groups, answer.truncated))),
      answer.warnings?.length ? errorList(answer.warnings, "warning") : null,
      groups.map(changesShown),
      h("h2", {}, `Against revision ${this.#from.revision}`),
      differenceShown(lines),
    ];
  }

  #confirm() {
    const { groups, isTruncated, revision } = this.#tried;
    const typed = h("input", { id: "policy-revision", inputmode: "numeric", autocomplete: "off", size: "8" });
    const yes = h("button", { type: "button", class: "danger", disabled: true }, "Put in force");
    typed.addEventListener("input", () => (yes.disabled = typed.value.trim() !== String(revision)));
    const dialog = h("dialog", { "aria-labelledby": "policy-confirm" },
      h("h2", { id: "policy-confirm" }, `Replace revision ${revision}?`),
      h("p", {}, countsText(groups, isTruncated)),
      h("p", {}, "The document of revision ", revision, " is kept: ", h("code", {}, `trainmaster policy rollback ${revision}`), " brings it back."),
      h("label", { for: "policy-revision" }, `Type ${revision}, the revision that this replaces`), typed,
      h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Leave it"), yes));
    yes.addEventListener("click", () => {
      dialog.close();
      this.#apply();
    });
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    typed.focus();
  }

  #apply() {
    return this.#asking(async () => {
      const { text, document, revision } = this.#tried;
      const now = await this.context.api.get("policy");
      if (now.revision !== revision) {
        replace(this.#answer, h("p", { class: "state-error", role: "alert" }, `Nothing was changed: revision ${now.revision} came into force since your trial. Try again against it.`));
        this.#tried = null;
        return;
      }
      const answer = await this.context.api.change("PUT", "policy", { policy: document, text });
      [this.#from, this.#tried] = [null, null];
      replace(this.#answer, h("p", { class: "good", role: "status" }, `Revision ${answer.revision} is in force.`));
      this.context.refresh();
    });
  }

  async #asking(act) {
    this.#isBusy = true;
    this.#paint();
    try {
      await act();
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      replace(this.#answer, h("p", { class: "state-error", role: "alert" }, trouble.detail), trouble.errors.length ? errorList(trouble.errors) : null);
    } finally {
      this.#isBusy = false;
      this.#paint();
    }
  }
}

function changesShown({ kind, label, changes }) {
  const rows = changes.slice(0, CHANGES_AT_ONCE).map(({ job, team, pool, message }) => [job ?? "(other team's)", team, pool, message]);
  const rest = changes.length - rows.length;
  return h("details", { open: changes.length <= 10 },
    h("summary", {}, h("b", { class: `change-${kind}` }, changes.length), ` ${label}`),
    plainTable(label, ["Job", "Team", "Pool", "Why"], rows),
    rest > 0 ? h("p", { class: "note" }, `and ${rest} more`) : null);
}

// Each with its path in the document.
export function errorList(errors, look = "") {
  return h("ul", { class: `problems ${look}` }, errors.map(({ field, message, hint }) =>
    h("li", {}, h("code", {}, field), ": ", h("bdi", {}, message), hint ? h("span", { class: "dim" }, " (", h("bdi", {}, hint), ")") : null)));
}

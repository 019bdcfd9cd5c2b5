// A drawer beside the queue that says all of one row: why it waits, and what would help. Escape closes it.

import { command } from "./copied.js";
import { h, keepingFocus, replace } from "./dom.js";
import { localTimes } from "./format.js";
import { hrefOf, stateCell } from "./job_cells.js";
import { told } from "./showing.js";
import { waitReport } from "./wait_report.js";

const FRESH_MS = 15_000; // a look at a job costs the API an estimate of its start

export class WaitDrawer {
  #row = null;
  #lookedAt = -Infinity;
  #known = null; // {job, row, wait, questions} of the row that is open
  #turn = 0;

  constructor(onclose) {
    this.onclose = onclose;
    this.element = h("aside", { class: "drawer", hidden: true, tabindex: "-1", "aria-label": "Why", onkeydown: (event) => event.key === "Escape" && this.close() });
  }

  open(row, context) {
    const isOther = this.#row?.key !== row.key;
    const isDue = isOther || this.#row.cells.state !== row.cells.state || performance.now() - this.#lookedAt > FRESH_MS;
    this.#row = row;
    if (isOther) this.#known = null;
    this.element.hidden = false;
    this.#paint(context);
    if (isOther) this.element.focus({ preventScroll: true });
    return isDue ? this.#look(context) : null;
  }

  // The same row in a new picture of the queue; one that left the queue closes the drawer.
  update(rows, context) {
    if (!this.#row) return;
    const row = rows.find((one) => one.key === this.#row.key);
    if (row) this.open(row, context);
    else this.close();
  }

  close() {
    if (!this.#row) return;
    const { key } = this.#row;
    this.#row = null;
    this.#turn += 1;
    this.element.hidden = true;
    this.onclose(key);
  }

  async #look(context) {
    const row = this.#row;
    if (!hrefOf(row)) return;
    this.#turn += 1;
    const turn = this.#turn;
    this.#lookedAt = performance.now();
    const known = await context.api.local(`jobs/${encodeURIComponent(row.name)}`, { now: new Date().toISOString() }).catch((trouble) => ({ trouble }));
    if (turn !== this.#turn) return;
    this.#known = known;
    this.#paint(context);
  }

  #paint(context) {
    const row = this.#row;
    const close = h("button", { type: "button", "data-key": "close", onclick: () => this.close() }, "Close");
    const parts = [
      h("div", { class: "drawer-head" }, h("h2", {}, row.cells.job), close),
      h("p", { class: "row" }, stateCell(row.cells.state), h("span", { class: "dim" }, [row.cells.team, row.cells.pool, row.cells.instances].filter(Boolean).join(" · "))),
      this.#said(row, context),
    ];
    keepingFocus(this.element, () => replace(this.element, parts));
  }

  #said(row, context) {
    const whole = localTimes(row.cells.reason, context.now);
    if (!row.name) return [whole ? h("p", {}, whole) : null, h("p", { class: "note" }, "It is another team's: its name, and why it waits, are not shown.")];
    if (!row.is_job) return [h("p", {}, whole), h("p", { class: "note" }, "An array is one row until its tasks start."), h("p", {}, h("a", { href: hrefOf(row) }, "Open its page"), h("span", { class: "dim" }, " for its tasks, their values and results")), command(`trainmaster arrays ${row.name}`, context.say)];
    const link = h("p", {}, h("a", { href: hrefOf(row) }, "Open its page"), h("span", { class: "dim" }, " for its story, curves and log"));
    if (!this.#known) return [whole ? h("p", {}, whole) : null, h("p", { class: "note", role: "status" }, "Reading who holds what it needs."), link];
    if (this.#known.trouble) return [whole ? h("p", {}, whole) : null, h("p", { class: "state-error", role: "status" }, told(this.#known.trouble)), link];
    return [waitReport(this.#known, context), link, row.phase === "waiting" ? command(`trainmaster why ${row.name}`, context.say) : null];
  }
}

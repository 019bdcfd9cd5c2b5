// A job's log over its attempts, which follows as lines come; every line is shown once and as it was printed.

import { Trouble, TroubleKind } from "./api.js";
import { h, replace } from "./dom.js";
import { clockSeconds } from "./format.js";
import { told } from "./showing.js";

const LOOK_MS = 3000;
const SLOW_LOOK_MS = 15_000; // once the job has ended
const MOST_LINES = 5000;
const AT_END_PX = 40;

export class LogView {
  #after = "";
  #attempt = null;
  #filter = "";
  #isOver = false;
  #timer = null;

  constructor(api, name) {
    this.api = api;
    this.name = name;
    this.lines = h("div", { class: "log-lines", role: "log", tabindex: "0", "aria-label": `Log of ${name}`, "aria-live": "off" });
    this.note = h("span", { class: "dim", role: "status" }, "Reading the log.");
    this.find = h("input", { type: "search", "data-find": true, "data-key": "log-find", "aria-label": "Find in the log", placeholder: "find (/)" });
    this.find.addEventListener("input", () => this.#filtered());
    this.attempts = h("select", { "data-key": "log-attempts", "aria-label": "Attempts" });
    this.attempts.addEventListener("change", () => this.#begin());
    this.follow = h("input", { type: "checkbox", checked: true, "data-key": "log-follow" });
    this.element = h("section", { class: "panel log", "aria-label": "Log" },
      h("div", { class: "row" }, h("h2", {}, "Log"), this.attempts, this.find, h("label", { class: "check" }, this.follow, "follow"), this.note),
      this.lines,
    );
    this.lines.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.lines;
      if (scrollHeight - scrollTop - clientHeight > AT_END_PX) this.follow.checked = false;
    });
  }

  // What is known of the job now: which attempts there are, and whether more will come.
  know(job, isOver) {
    this.#isOver = isOver;
    const numbers = (job.attempts ?? []).map((one) => one.attempt);
    const stamp = numbers.join();
    if (this.attempts.dataset.stamp === stamp) return;
    this.attempts.dataset.stamp = stamp;
    const chosen = this.attempts.value;
    replace(this.attempts, h("option", { value: "" }, "all attempts"), numbers.map((one) => h("option", { value: one, selected: String(one) === chosen }, `attempt ${one}`)));
  }

  start() {
    if (this.#timer === null) this.#look();
  }

  #begin() {
    this.#after = "";
    this.#attempt = null;
    replace(this.lines);
    clearTimeout(this.#timer);
    this.#look();
  }

  async #look() {
    const asked = this.attempts.value;
    let pause = this.#isOver ? SLOW_LOOK_MS : LOOK_MS;
    try {
      const answer = document.hidden && this.#after ? null : await this.api.local(`jobs/${encodeURIComponent(this.name)}/logs`, { after: this.#after, attempt: asked });
      if (answer && asked === this.attempts.value) this.#add(answer);
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      pause = Math.max(pause, 1000 * (trouble.retryAfter ?? 0));
      replace(this.note, h("span", { class: "state-error" }, told(trouble), trouble.kind === TroubleKind.REFUSED ? "" : " Still trying; no line is lost."));
    }
    this.#timer = this.element.isConnected ? setTimeout(() => this.#look(), pause) : null;
  }

  #add(answer) {
    if (answer.is_new) {
      replace(this.lines);
      this.#attempt = null;
    }
    this.#after = answer.next;
    const hosts = new Set(answer.lines.map((one) => one.host));
    const isShared = hosts.size > 1 || this.lines.dataset.hosts === "many";
    if (isShared) this.lines.dataset.hosts = "many";
    const made = [];
    if (answer.skipped) made.push(h("p", { class: "log-title" }, `${answer.skipped} lines came while this page was away and are not kept; trainmaster logs has them.`));
    for (const one of answer.lines) {
      if (one.attempt !== this.#attempt && (this.#attempt !== null || one.attempt > 0)) made.push(h("p", { class: "log-title" }, `attempt ${one.attempt}`));
      this.#attempt = one.attempt;
      made.push(this.#line(one, isShared));
    }
    this.lines.append(...made);
    while (this.lines.childElementCount > MOST_LINES) this.lines.firstElementChild.remove();
    const many = this.lines.querySelectorAll(".log-line").length;
    replace(this.note, many ? `${many} lines` : this.#isOver ? "It has printed nothing." : "Nothing printed yet.");
    if (this.follow.checked && made.length) this.lines.scrollTop = this.lines.scrollHeight;
  }

  #line(one, isShared) {
    const text = isShared ? `${one.host} | ${one.text}` : one.text;
    const element = h("p", { class: "log-line", title: clockSeconds(one.at) }, text || " ");
    element.hidden = Boolean(this.#filter) && !text.toLowerCase().includes(this.#filter);
    return element;
  }

  #filtered() {
    this.#filter = this.find.value.trim().toLowerCase();
    for (const one of this.lines.querySelectorAll(".log-line")) {
      one.hidden = Boolean(this.#filter) && !one.textContent.toLowerCase().includes(this.#filter);
    }
  }
}

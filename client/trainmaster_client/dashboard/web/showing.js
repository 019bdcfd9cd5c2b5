// One page as it is shown: loaded, loaded again each few seconds, kept and marked stale where nothing comes.

import { Trouble, TroubleKind } from "./api.js";
import { h, keepingFocus, replace } from "./dom.js";
import { clockSeconds } from "./format.js";

const SLOW_MS = 3000;
const CREDENTIALS_SECONDS = 3;
const LONGEST_SECONDS = 60;
const USUAL_SECONDS = 15;
const MISSING_SECONDS = 30;
const SIGN_IN = "aws sso login";

// What a page is given beside its data:
// {api, params, session, me, state, now, refresh(), repaint(), navigate(hash), hashOf(path, params),
//  setParams(params), say(text)}. `state` lives as long as the page is shown.
export class Showing {
  #controller = new AbortController();
  #timer = null;
  #looking = null;
  #again = false;
  #troubles = 0;
  #data;
  #loadedAt = null;
  #root = h("div", { class: "page" });

  constructor({ route, api, frame, main, banner, say, navigate, hashOf }) {
    this.route = route;
    this.frame = frame;
    this.main = main;
    this.banner = banner;
    this.context = {
      api,
      params: route.params,
      state: {},
      refresh: () => this.refresh(),
      repaint: () => this.repaint(),
      setParams: (params, { load = true } = {}) => this.#setParams(params, load),
      navigate,
      hashOf,
      say,
    };
  }

  start() {
    this.#bannerOff();
    this.main.dataset.page = this.route.page.title.toLowerCase();
    this.main.dataset.state = "loading";
    replace(this.main, h("div", { class: "skeleton", "aria-hidden": "true" }, [1, 2, 3, 4, 5].map(() => h("i", {}))), h("p", { class: "quiet", role: "status" }, "Loading."));
    const slow = setTimeout(() => this.#sayStillLoading(), SLOW_MS);
    this.#controller.signal.addEventListener("abort", () => clearTimeout(slow));
    this.main.focus({ preventScroll: true });
    this.refresh();
  }

  stop() {
    this.#controller.abort();
    clearTimeout(this.#timer);
  }

  // Now; of several wishes while a load is under way one is heard after it.
  async refresh() {
    if (this.#looking) {
      this.#again = true;
      return this.#looking;
    }
    clearTimeout(this.#timer);
    this.#looking = this.#look();
    await this.#looking;
    this.#looking = null;
    if (this.#again) {
      this.#again = false;
      return this.refresh();
    }
    return undefined;
  }

  // The same data once more, e.g. sorted otherwise.
  repaint() {
    if (this.#data !== undefined && !this.#controller.signal.aborted) this.#paint();
  }

  async #look() {
    const { signal } = this.#controller;
    if (document.hidden && this.#data !== undefined) return; // it is loaded when it is looked at again
    try {
      const data = await this.route.page.load(this.context.api, this.context.params, signal, this.#data === undefined ? (part) => this.#early(part) : null);
      if (signal.aborted) return;
      [this.#data, this.#loadedAt, this.#troubles] = [data, new Date(), 0];
      this.#bannerOff();
      this.main.dataset.state = "ready";
      this.#paint();
      this.#later(this.route.page.pauseSeconds?.(data) ?? this.route.page.refreshSeconds ?? USUAL_SECONDS);
    } catch (error) {
      if (signal.aborted) return;
      this.#failed(error instanceof Trouble ? error : new Trouble(TroubleKind.REFUSED, `The page failed: ${error}`));
    }
  }

  // A page that has its first part may show it while the rest comes; a later load is given no such callback.
  #early(part) {
    if (this.#data !== undefined || this.#controller.signal.aborted) return;
    this.#data = part;
    this.#loadedAt = new Date();
    this.main.dataset.state = "partial";
    this.#paint();
  }

  #paint() {
    const context = { ...this.context, session: this.frame.session, me: this.frame.me, now: new Date() };
    if (this.#root.parentElement !== this.main) replace(this.main, this.#root);
    keepingFocus(this.#root, () => this.route.page.render(this.#root, this.#data, context));
  }

  #failed(trouble) {
    if (trouble.kind === TroubleKind.SESSION) {
      dispatchEvent(new CustomEvent("session-ended", { detail: trouble.detail }));
      return;
    }
    this.#troubles += 1;
    const wait = this.#pause(trouble);
    if (this.#data === undefined) {
      this.main.dataset.state = "error";
      replace(this.main, h("h1", {}, this.route.params.name ?? this.route.page.title), ...this.#said(trouble, wait));
    } else {
      this.main.dataset.state = "stale";
      this.banner.hidden = false;
      const stale = `Kept picture, stale since ${clockSeconds(this.#loadedAt)}.`;
      replace(this.banner, h("b", {}, stale), " ", ...this.#said(trouble, wait, "span"));
    }
    this.#later(wait);
  }

  #said(trouble, wait, tag = "p") {
    const button = h("button", { type: "button", onclick: () => this.refresh() }, "Try now");
    const then = ` Trying again in ${Math.round(wait)} s. `;
    return [
      h(tag, { class: "state state-error", "data-trouble": trouble.kind, role: tag === "p" ? "alert" : null }, told(trouble), then),
      button,
    ];
  }

  #pause(trouble) {
    if (trouble.kind === TroubleKind.CREDENTIALS) return CREDENTIALS_SECONDS;
    if (trouble.kind === TroubleKind.MISSING) return MISSING_SECONDS;
    const usual = this.route.page.refreshSeconds ?? USUAL_SECONDS;
    if (trouble.kind === TroubleKind.THROTTLED) return Math.max(1, trouble.retryAfter ?? usual);
    return Math.min(LONGEST_SECONDS, Math.max(trouble.retryAfter ?? 0, usual * 2 ** Math.min(3, this.#troubles - 1)));
  }

  #later(seconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh(), 1000 * seconds);
  }

  #setParams(params, load) {
    const given = { ...this.route.params, ...params };
    for (const [name, value] of Object.entries(given)) if (value === "" || value === null) delete given[name];
    this.route.params = given;
    this.context.params = given;
    history.replaceState(null, "", this.context.hashOf(this.route.path, given));
    if (load) this.refresh();
    else this.repaint();
  }

  #sayStillLoading() {
    if (this.main.dataset.state !== "loading") return;
    replace(this.main, h("p", { class: "state", role: "status" }, "Loading. The API has not answered for 3 s; it gets 40."));
  }

  #bannerOff() {
    this.banner.hidden = true;
    replace(this.banner);
  }
}

// A trouble as a line, with what to do where the reader can do something.
export function told(trouble) {
  if (trouble.kind === TroubleKind.CREDENTIALS) {
    const remedy = trouble.detail.includes(SIGN_IN) ? "" : [" Run ", h("code", {}, SIGN_IN), " or renew them as usual;"];
    return ["The dashboard's AWS credentials do not work: ", trouble.detail, remedy, " The page recovers automatically."];
  }
  if (trouble.kind === TroubleKind.THROTTLED) return `Too many calls: ${trouble.detail}`;
  return trouble.detail;
}

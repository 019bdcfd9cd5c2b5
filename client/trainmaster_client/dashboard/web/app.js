// The frame of the pages: routes behind the hash, who and where, keys, and the end of the session.

import { Api, TroubleKind } from "./api.js";
import { h, replace } from "./dom.js";
import { apiName, zoneSaid } from "./format.js";
import { knowStates } from "./job_cells.js";
import { pressed, shortcuts } from "./keys.js";
import { page as arrayPage } from "./pages/array.js";
import { page as arraysPage } from "./pages/arrays.js";
import { page as eventsPage } from "./pages/events.js";
import { page as gatewayPage } from "./pages/gateway.js";
import { page as jobPage } from "./pages/job.js";
import { page as jobsPage } from "./pages/jobs.js";
import { page as moneyPage } from "./pages/money.js";
import { page as nowPage } from "./pages/now.js";
import { page as policyPage } from "./pages/policy.js";
import { page as timelinePage } from "./pages/timeline.js";
import { page as whatIfPage } from "./pages/what_if.js";
import { Showing } from "./showing.js";

// In the order of the navigation; `key` follows g.
export const PAGES = [
  { path: "now", page: nowPage, key: "n" },
  { path: "timeline", page: timelinePage, key: "t" },
  { path: "jobs", page: jobsPage, one: jobPage, key: "j" },
  { path: "arrays", page: arraysPage, one: arrayPage, key: "a" },
  { path: "money", page: moneyPage, key: "m" },
  { path: "policy", page: policyPage, key: "p" },
  { path: "what-if", page: whatIfPage, key: "i" },
  { path: "events", page: eventsPage, key: "e" },
];
const HIDDEN = [{ path: "gateway", page: gatewayPage, key: "w" }]; // linked at the foot
const TOKEN = "#token=";
const ME_RETRY_MS = 5000;

const api = new Api();
const frame = { session: { changes: false }, me: null };
const at = (id) => document.getElementById(id);
let showing = null;

// "#/jobs/llama-7b?tail=5" -> {path: "jobs", page, params: {name: "llama-7b", tail: "5"}}; null: no such page.
export function routeOf(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [first, name] = path.split("/", 2);
  const params = Object.fromEntries(new URLSearchParams(query));
  const found = [...PAGES, ...HIDDEN].find((one) => one.path === (first || "now"));
  if (found?.one && name) return { path: first, page: found.one, params: { ...params, name: decoded(name) } };
  return found ? { path: found.path, page: found.page, params } : null;
}

export function hashOf(path, params = {}) {
  const { name, ...rest } = params;
  const given = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${path}${name ? `/${encodeURIComponent(name)}` : ""}${query ? `?${query}` : ""}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function go() {
  const route = routeOf(location.hash);
  showing?.stop();
  paintNavigation(route);
  if (!route) {
    document.title = "trainmaster";
    replace(at("main"), h("h1", {}, "There is no such page"), h("p", {}, h("a", { href: "#/now" }, "To the queue")));
    return;
  }
  document.title = `${route.params.name ?? route.page.title} · trainmaster`;
  showing = new Showing({ route, api, frame, main: at("main"), banner: at("banner"), say, navigate, hashOf });
  showing.start();
}

function navigate(hash) {
  if (location.hash === hash) showing?.refresh();
  else location.hash = hash;
}

// Once, to who does not see the page; the same words twice are said twice.
function say(text) {
  replace(at("said"), h("span", {}, text));
}

function paintNavigation(route) {
  const links = PAGES.map(({ path, page, key }) =>
    h(
      "a",
      { href: `#/${path}`, "aria-current": route?.path === path ? "page" : null, title: `Keys: g ${key}` },
      page.title,
    ),
  );
  replace(at("nav"), links);
}

function paintWho() {
  const { session, me } = frame;
  replace(at("where"), [session.region, apiName(session.api_url)].filter(Boolean).join(" / "));
  const name = me?.principal ? me.principal.split(/[/:]/).pop() : "";
  const teams = (me?.teams ?? []).map((one) => one.name).join(", ");
  const who = [name, teams && `@ ${teams}`, me?.admin && "admin"].filter(Boolean).join(" ");
  const mode = session.changes
    ? h("b", { class: "mode mode-changes" }, "changes allowed")
    : h("span", { class: "mode", title: "Started with --allow-changes it may change jobs" }, "read-only");
  replace(at("who"), who && h("span", { title: me.principal }, who), " ", mode);
}

function paintFoot() {
  const help = h("button", { type: "button", class: "link", onclick: () => shortcuts(PAGES) }, "Keys (?)");
  const gateway = h("a", { href: "#/gateway" }, "Gateway");
  const version = frame.session.version ? `trainmaster ${frame.session.version}. ` : "";
  replace(at("foot"), version, zoneSaid(), " ", help, " ", gateway);
}

// A 404 is an older stack's: then the pages go without. Anything else is tried again.
async function learnMe() {
  try {
    frame.me = await api.me();
    paintWho();
    if (frame.me) showing?.repaint();
  } catch {
    setTimeout(learnMe, ME_RETRY_MS);
  }
}

function refuseSession(detail) {
  showing?.stop();
  replace(
    at("main"),
    h("h1", {}, "This link has been used"),
    h("p", {}, detail),
    h("p", {}, "A restarted dashboard has a new link, too: its sessions end with its process."),
    h("p", {}, "Get another one: ", h("code", {}, `trainmaster gateway --print-env --port ${location.port || 80}`)),
  );
}

async function begin() {
  paintFoot();
  try {
    if (location.hash.startsWith(TOKEN)) {
      const token = location.hash.slice(TOKEN.length);
      history.replaceState(null, "", "#/now");
      await api.open(token).catch((trouble) => {
        if (trouble.kind !== TroubleKind.SESSION) throw trouble; // a session of before may do
      });
    }
    frame.session = await api.local("session");
    knowStates(frame.session.states);
  } catch (trouble) {
    if (trouble.kind === TroubleKind.SESSION) refuseSession(trouble.detail);
    else {
      replace(at("main"), h("p", { class: "state state-error" }, trouble.detail ?? String(trouble), " Trying again."));
      setTimeout(begin, ME_RETRY_MS);
    }
    return;
  }
  paintWho();
  paintFoot();
  addEventListener("hashchange", go);
  addEventListener("session-ended", (event) => refuseSession(event.detail));
  addEventListener("keydown", (event) => pressed(event, { pages: [...PAGES, ...HIDDEN], refresh: () => showing?.refresh() }));
  document.addEventListener("visibilitychange", () => document.hidden || showing?.refresh());
  go();
  learnMe();
}

begin();

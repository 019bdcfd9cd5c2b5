// Calls of the queue's API and of this dashboard's own process, and what goes wrong with them, said in a line.
//
// All URLs are relative to the page, so that they are right behind any prefix of a proxy.

export const TroubleKind = Object.freeze({
  CREDENTIALS: "credentials", // of the dashboard's process: expired, or none
  MISSING: "missing", // no such job, or a stack that is older than the page
  REFUSED: "refused", // by the API: rights, the policy, a job's state
  SESSION: "session", // this page has no session of this process
  THROTTLED: "throttled",
  UNREACHABLE: "unreachable", // no answer, or a failure of the server's own
});

const PATIENCE_MS = 40_000; // longer than the API's 29 s and the gateway's own 30
const MOST_PAGES = 1000;
// Each dashboard behind one origin, as of JupyterLab's proxy, has a place of its own.
const SESSION_KEY = `trainmaster-session ${globalThis.location ? new URL(".", location.href).pathname : ""}`;
const NO_ROUTE = "Missing Authentication Token"; // API Gateway's words for a path that it does not have

export class Trouble extends Error {
  constructor(kind, detail, { status = 0, retryAfter = null, errors = [] } = {}) {
    super(detail);
    this.name = "Trouble";
    this.kind = kind;
    this.detail = detail;
    this.status = status;
    this.retryAfter = retryAfter; // seconds
    this.errors = errors; // [{field, message, hint, rule}]
  }
}

// The session of this origin, port included, which other ports of the host cannot read; a cookie would go to all
// of them. Where the browser keeps nothing (private modes), it lasts as long as the page.
class KeptSession {
  #session = null;

  get value() {
    try {
      return globalThis.localStorage?.getItem(SESSION_KEY) ?? this.#session;
    } catch {
      return this.#session;
    }
  }

  set value(session) {
    this.#session = session;
    try {
      globalThis.localStorage?.setItem(SESSION_KEY, session);
    } catch {
      // kept in the page alone
    }
  }
}

// api.get("pools"), api.get("jobs", {team: "vision"}, {signal}); api.all("pools", {}, "pools");
// api.local("queue"); api.local("jobs/x/logs", {after: "..."}); api.change("DELETE", "jobs/x"); api.text("usage", {...}, "text/csv").
export class Api {
  #fetch;
  #kept = new Map(); // by URL: {etag, document}, of the answers that have an ETag
  #me = null;
  #session = new KeptSession();

  constructor(fetch = (...given) => globalThis.fetch(...given)) {
    this.#fetch = fetch;
  }

  // A document of the REST API.
  get(path, query = {}, options = {}) {
    return this.#read(`../api/${path}${queryText(query)}`, options);
  }

  // Who the dashboard acts as, asked for once: {principal, admin, teams}; null: an older stack does not say.
  async me() {
    this.#me ??= orMissing(this.get("me"));
    try {
      return await this.#me;
    } catch (trouble) {
      this.#me = null;
      throw trouble;
    }
  }

  // A document of this dashboard's own process; `headers` of options go with the question.
  local(path, query = {}, options = {}) {
    return this.#read(`data/${path}${queryText(query)}`, options);
  }

  // The list `key` over all pages: {[key]: [...], ...the first page's other members}.
  async all(path, query, key, options = {}) {
    const found = [];
    let first = null;
    let token = null;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const document = await this.get(path, { ...query, next_token: token }, options);
      first ??= document;
      found.push(...(document[key] ?? []));
      if (!document.next_token || document.next_token === token) break;
      token = document.next_token;
    }
    return { ...first, [key]: found, next_token: null };
  }

  // An answer as text, e.g. CSV.
  async text(path, query, accept, options = {}) {
    const url = `../api/${path}${queryText(query)}`;
    const response = await this.#sent(url, { headers: { accept } }, options);
    return response.text();
  }

  // A change: PATCH, PUT, POST or DELETE. Not repeated by itself: `sure` of actions.js does that, with the same
  // options.key, by which the API knows a repeated submission.
  async change(method, path, body = null, options = {}) {
    const headers = {
      ...(body === null ? {} : { "content-type": "application/json" }),
      ...(options.key ? { "idempotency-key": options.key } : {}),
    };
    const sent = { method, headers, body: body === null ? null : JSON.stringify(body) };
    return parsed(await this.#sent(`../api/${path}`, sent, options));
  }

  // Something that this dashboard's own process works out; it changes nothing.
  async work(path, body) {
    const headers = { "content-type": "application/json" };
    return parsed(await this.#sent(`data/${path}`, { method: "POST", headers, body: JSON.stringify(body) }, {}));
  }

  // The token of a link becomes this origin's session.
  async open(token) {
    const response = await this.#sent("session", { method: "POST", headers: { "trainmaster-token": token } }, {});
    this.#session.value = (await parsed(response)).session;
  }

  async #read(url, { signal, headers: more = {} } = {}) {
    const kept = this.#kept.get(url);
    const headers = kept ? { ...more, "if-none-match": kept.etag } : more;
    const response = await this.#sent(url, { headers }, { signal });
    if (response.status === 304 && kept) return kept.document;
    const document = await parsed(response);
    const etag = response.headers.get("etag");
    if (etag) this.#kept.set(url, { etag, document });
    if (this.#kept.size > 200) this.#kept.delete(this.#kept.keys().next().value);
    return document;
  }

  async #sent(url, request, { signal } = {}) {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const until = signal ? AbortSignal.any([signal, patience]) : patience;
    const session = this.#session.value;
    const headers = session ? { ...request.headers, "trainmaster-session": session } : request.headers;
    let response;
    try {
      response = await this.#fetch(url, { ...request, headers, signal: until, credentials: "same-origin", cache: "no-store" });
    } catch (error) {
      if (signal?.aborted) throw error;
      const detail = patience.aborted
        ? `No answer within ${PATIENCE_MS / 1000} s.`
        : "The dashboard's process does not answer: it has ended, or the connection to it is cut.";
      throw new Trouble(TroubleKind.UNREACHABLE, detail);
    }
    if (response.ok || response.status === 304) return response;
    throw await troubleOf(response);
  }
}

// What a refusal means for the page.
export async function troubleOf(response) {
  const document = await response.json().catch(() => ({}));
  const detail = document.detail ?? document.message ?? document.Message ?? `The answer has status ${response.status}.`;
  const status = response.status;
  const retryAfter = seconds(response.headers.get("retry-after"));
  const errors = Array.isArray(document.errors) ? document.errors : [];
  return new Trouble(kindOf(response, detail), String(detail), { status, retryAfter, errors });
}

function kindOf(response, detail) {
  const status = response.status;
  if (status === 401) return TroubleKind.CREDENTIALS;
  if (status === 403 && response.headers.get("trainmaster-refused-by") === "gateway") return TroubleKind.SESSION;
  if (status === 404 || (status === 403 && detail === NO_ROUTE)) return TroubleKind.MISSING;
  if (status === 429) return TroubleKind.THROTTLED;
  return status >= 500 ? TroubleKind.UNREACHABLE : TroubleKind.REFUSED;
}

// A document of a route that an older stack does not have: null then, other troubles are thrown.
export async function orMissing(promise) {
  try {
    return await promise;
  } catch (trouble) {
    if (trouble instanceof Trouble && trouble.kind === TroubleKind.MISSING) return null;
    throw trouble;
  }
}

async function parsed(response) {
  if (response.status === 204) return {};
  try {
    return await response.json();
  } catch {
    throw new Trouble(TroubleKind.UNREACHABLE, "The answer is not a JSON document.", { status: response.status });
  }
}

function queryText(query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `?${text}` : "";
}

function seconds(text) {
  const found = Number(text);
  return text && Number.isFinite(found) && found >= 0 ? found : null;
}

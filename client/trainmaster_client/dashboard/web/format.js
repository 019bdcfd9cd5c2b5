// How times, durations, money and instances are written. Times are in the reader's zone, which the page's
// foot names once.

const DASH = "–";
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const clockParts = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const secondParts = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", hourCycle: "h23" });
const dayParts = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const yearParts = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

export function zoneSaid(now = new Date()) {
  const minutes = -now.getTimezoneOffset();
  const sign = minutes < 0 ? "-" : "+";
  const hours = Math.floor(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return `Times are in ${zone} (UTC${sign}${hours}${rest ? `:${String(rest).padStart(2, "0")}` : ""}).`;
}

// The id of an API of API Gateway; of an address or a host without a domain the whole with its port.
export function apiName(url) {
  if (!url) return "";
  const { host, hostname } = new URL(url);
  return /^[\d.]+$|:|^[^.]+$/.test(hostname) ? host : hostname.split(".")[0];
}

// An ISO 8601 instant as a Date; null where there is none, or it is not valid.
export function date(iso) {
  if (iso === null || iso === undefined || iso === "") return null;
  const found = iso instanceof Date ? iso : new Date(iso);
  return Number.isNaN(found.getTime()) ? null : found;
}

// "07:38", on another day "21 Nov 07:38", in another year with it.
export function clock(iso, now = new Date()) {
  const at = date(iso);
  if (!at) return DASH;
  const time = clockParts.format(at);
  if (at.toDateString() === now.toDateString()) return time;
  const day = at.getFullYear() === now.getFullYear() ? dayParts.format(at) : yearParts.format(at);
  return `${day} ${time}`;
}

// With seconds, for stories and logs.
export function clockSeconds(iso, now = new Date()) {
  const at = date(iso);
  if (!at) return DASH;
  const day = at.toDateString() === now.toDateString() ? "" : `${dayParts.format(at)} `;
  return `${day}${secondParts.format(at)}`;
}

export function day(iso) {
  const at = date(iso);
  return at ? yearParts.format(at) : DASH;
}

// Two units at most: 48s, 12m, 1h05m, 3d4h.
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(Number(seconds))) return DASH;
  const whole = Math.max(0, Math.round(Number(seconds)));
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 10) return whole % 60 ? `${minutes}m${String(whole % 60).padStart(2, "0")}s` : `${minutes}m`;
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours}h${String(minutes % 60).padStart(2, "0")}m` : `${hours}h`;
  return hours % 24 ? `${Math.floor(hours / 24)}d${hours % 24}h` : `${Math.floor(hours / 24)}d`;
}

export function since(iso, now = new Date()) {
  const at = date(iso);
  return at ? duration((now - at) / 1000) : DASH;
}

// Cents below 1,000 USD, whole dollars from there on. Null: a price is unknown.
export function usd(value, { cents } = {}) {
  const amount = number(value);
  if (amount === null) return "unknown";
  const digits = (cents ?? Math.abs(amount) < 1000) ? 2 : 0;
  return `${amount.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} USD`;
}

export function count(value) {
  const amount = number(value);
  return amount === null ? DASH : amount.toLocaleString("en-US");
}

export function percent(share, digits = 0) {
  const amount = number(share);
  return amount === null ? DASH : `${(100 * amount).toFixed(digits)} %`;
}

export function number(value) {
  if (value === null || value === undefined || value === "") return null;
  const amount = Number(value);
  return Number.isFinite(amount) ? amount : null;
}

// {"ml.p5.48xlarge": 2} -> "2x ml.p5.48xlarge".
export function instances(counts, capacityType = "") {
  const parts = Object.entries(counts ?? {}).map(([type, many]) => `${many}x ${type}`);
  return (parts.join(" + ") || DASH) + (capacityType === "spot" ? " spot" : "");
}

// A reason as the API has it: {code, message}; the code alone where that is all there is.
export function reason(one, state = "") {
  if (!one) return "";
  const code = one.code === state ? "" : one.code;
  return [code, one.message].filter(Boolean).join(": ");
}

// Long names lose their middle: their ends tell sweeps and attempts apart.
export function middle(text, most) {
  const name = String(text ?? "");
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}

const INSTANTS = /(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z| UTC|\+00:00)/g;

const SPANS = /(\d{4}-\d\d-\d\d \d\d:\d\d)(?= to \d{4}-\d\d-\d\d \d\d:\d\d UTC)/g; // whose zone is said once

// A text of the API with its instants, which are UTC, on the reader's clock.
export function localTimes(text, now = new Date()) {
  return String(text ?? "").replace(SPANS, "$1 UTC").replace(INSTANTS, (written, day_, time) => (date(`${day_}T${time}:00Z`) ? clock(`${day_}T${time}:00Z`, now) : written));
}

export { DASH };

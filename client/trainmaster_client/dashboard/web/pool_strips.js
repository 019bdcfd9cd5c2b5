// A pool as a strip: what is used of what there is, its last day as a curve, what ends next, what is ahead.

import { h, svg } from "./dom.js";
import { localTimes, percent } from "./format.js";

export const DAY_SECONDS = 86_400;
export const STEP_SECONDS = 1800;
const [WIDE, HIGH] = [100, 30];

export function poolStrip(pool, points) {
  return h("section", { class: "panel strip", "aria-label": `Pool ${pool.name}` },
    h("h2", {}, pool.name),
    h("p", { class: "strip-said" }, [pool.waiting, pool.next_end].filter(Boolean).join(" · ")),
    h("div", { class: "gauges" }, pool.gauges.map(gauge)),
    spark(shares(points ?? [])),
    pool.calendar.length ? h("p", { class: "note wide" }, "Ahead: ", pool.calendar.map((text) => localTimes(text)).join("; ")) : null,
    [...pool.plans, ...pool.reservations].map((text) => h("p", { class: "note wide" }, localTimes(text))),
    pool.warnings.map((text) => h("p", { class: "note warn wide" }, localTimes(text))));
}

function gauge({ instance_type: type, capacity_type: kind, capacity, used, warm, free }) {
  const whole = Math.max(1, capacity, used + warm);
  const share = (many) => `${(100 * many) / whole}%`;
  const name = `${type}${kind === "spot" ? " spot" : ""}`;
  return h("div", { class: "gauge" },
    h("span", { class: "gauge-type", title: name }, name),
    h("span", { class: "gauge-bar", "aria-hidden": "true", vars: { "--used": share(used), "--warm": share(warm) } },
      h("span", { class: "gauge-used" }), h("span", { class: "gauge-warm" })),
    h("span", { class: "gauge-said" }, h("b", {}, `${used} of ${capacity}`), " used", warm ? `, ${warm} warm` : "", free ? `, ${free} free` : ""));
}

// Points of `GET /pools/history` as parts of 1 that were used of all instances; null where there were none.
export function shares(points) {
  return points.map((point) => {
    let [used, capacity] = [0, 0];
    for (const kind of ["on-demand", "spot"]) {
      for (const one of Object.values(point[kind] ?? {})) {
        used += one.used ?? 0;
        capacity += one.capacity ?? 0;
      }
    }
    return { at: Date.parse(point.at), share: capacity > 0 ? Math.min(1, used / capacity) : null };
  });
}

function spark(values) {
  const seen = values.filter((one) => one.share !== null && Number.isFinite(one.at));
  if (seen.length < 2) return h("figure", { class: "spark" }, h("figcaption", {}, values.length ? "Its use is not known yet" : ""));
  const mean = seen.reduce((sum, one) => sum + one.share, 0) / seen.length;
  const end = seen.at(-1).at + STEP_SECONDS * 1000;
  const x = (at) => WIDE * (1 - (end - at) / (DAY_SECONDS * 1000));
  const y = (share) => (HIGH - 1) * (1 - share) + 0.5;
  const steps = seen.map(({ at, share }) => `L${Math.max(0, x(at)).toFixed(1)} ${y(share).toFixed(1)}H${x(at + STEP_SECONDS * 1000).toFixed(1)}`).join("");
  const begin = Math.max(0, x(seen[0].at)).toFixed(1);
  return h("figure", { class: "spark" },
    svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": `Used on average ${percent(mean)} over the last 24 hours, as far as it is recorded` },
      svg("path", { class: "top", d: `M0 .5H${WIDE}` }),
      svg("path", { class: "area", d: `M${begin} ${HIGH}${steps}V${HIGH}z` }),
      svg("path", { class: "stroke", d: `M${steps.slice(1)}` })),
    h("figcaption", {}, h("span", {}, "24 h"), h("span", {}, `${percent(mean)} used`)));
}

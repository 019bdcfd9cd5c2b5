// The rules that bind a caller, in a table; what a rule holds is written as in the policy.

import { h } from "../dom.js";
import { plainTable } from "../plain_table.js";

const LIMITS = { max_priority: "highest priority", roles: "training roles", images: "images", s3_prefixes: "S3 prefixes", budget: "budget" };
const OWN = new Set(["name", "rules", "pools", ...Object.keys(LIMITS)]);

export function rulesShown({ rules, teams }, isAdmin) {
  return [
    h("h2", {}, isAdmin ? "Rules for all teams" : "Rules"),
    rulesTable("Rules", rules, "There are no rules: only what AWS itself refuses is refused."),
    (teams ?? []).map(teamShown),
  ];
}

function rulesTable(label, rules, none) {
  const written = Object.entries(rules ?? {});
  if (!written.length) return h("p", { class: "state" }, none);
  return plainTable(label, ["Rule", "Mode", "Says"], written.map(([name, rule]) => {
    const { mode, ...rest } = isObject(rule) ? rule : { value: rule };
    return [h("code", {}, name), mode ?? "enforce", said(rest)];
  }));
}

function teamShown(team) {
  const facts = Object.entries(LIMITS)
    .filter(([key]) => key in team)
    .map(([key, label]) => [label, team[key] === null ? "no bound" : said(team[key])]);
  const more = Object.entries(team).filter(([key]) => !OWN.has(key)).map(([key, value]) => [key, said(value)]);
  const pools = (team.pools ?? []).map(({ name, limits, quota }) => [`pool ${name}`, [said(limits), quota ? `quota ${said(quota)}` : ""].filter(Boolean).join("; ")]);
  return [
    h("h2", { class: "name" }, "Team ", h("bdi", {}, team.name)),
    h("dl", { class: "facts" }, [...facts, ...more, ...pools].map(([name, text]) => [h("dt", {}, name), h("dd", {}, h("bdi", {}, text))])),
    Object.keys(team.rules ?? {}).length ? rulesTable(`Rules of team ${team.name}`, team.rules, "") : null,
  ];
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

// A value on one line, without the quotes of JSON where they say nothing.
export function said(value) {
  if (Array.isArray(value)) return value.map(said).join(", ") || "none";
  if (isObject(value)) return Object.entries(value).map(([key, one]) => (key === "value" ? said(one) : `${key}: ${isObject(one) ? `{${said(one)}}` : said(one)}`)).join(", ");
  return value === null ? "none" : String(value);
}

// The changes of a policy's dry run, and the feed of events.

import assert from "node:assert/strict";
import { test } from "node:test";

import { joined, searched, sentences, weightOf } from "../web/events/feed.js";
import { countsText, groupedChanges, lineDiff } from "../web/policy/changes.js";
import { changed, keyOf } from "../web/pages/what_if.js";

const change = (job, kind) => ({ job, team: "vision", pool: "p5", change: kind, message: "" });

test("changes are grouped, the worst first, a kind of a newer stack last", () => {
  const groups = groupedChanges([change("a", "starts"), change("b", "dreams"), change("c", "forbidden"), change("d", "starts")]);
  assert.deepEqual(groups.map(({ kind, changes }) => [kind, changes.length]), [["forbidden", 1], ["starts", 2], ["dreams", 1]]);
  assert.equal(countsText(groups.slice(0, 2)), "Of the jobs there are now 1 would be refused when due to start, 2 would start now.");
});

test("no changes are said too", () => {
  assert.equal(countsText([], false), "No job would start, stop or wait for it.");
});

test("a difference is shown with the lines around it, the rest is left out", () => {
  const before = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
  const after = before.with(1, "B").with(8, "I");
  const lines = lineDiff(before.join("\n"), after.join("\n"), 1).map(({ sign, text }) => sign + text);
  assert.deepEqual(lines, [" a", "-b", "+B", " c", "…", " h", "-i", "+I", " j"]);
  assert.deepEqual(lineDiff("a\nb", "a\nb"), []);
});

test("lines that only one text has are told", () => {
  assert.deepEqual(lineDiff("a", "a\nb", 0).map(({ sign, text }) => sign + text), ["+b"]);
  assert.deepEqual(lineDiff("a\nb", "b", 0).map(({ sign, text }) => sign + text), ["-a"]);
});

const event = (at, kind, more = {}) => ({ at, kind, team: "vision", job: "a", detail: { what: `${kind} at ${at}` }, ...more });

test("an event that comes twice is there once, the newest are first, the oldest go", () => {
  const known = [event("2026-11-02T10:00:00Z", "Job Failed"), event("2026-11-02T09:00:00Z", "Job Idle")];
  const feed = joined(known, [event("2026-11-02T11:00:00Z", "Job Completed"), { ...known[0] }]);
  assert.deepEqual(feed.map((one) => one.kind), ["Job Completed", "Job Failed", "Job Idle"]);
  assert.deepEqual(joined(feed, [], 2).map((one) => one.kind), ["Job Completed", "Job Failed"]);
});

test("a search wants all its words, wherever they are", () => {
  const feed = [event("1", "Job Failed", { job: "llama-7b" }), event("2", "Job Failed", { job: "vit" })];
  assert.deepEqual(searched(feed, "LLAMA failed").map((one) => one.job), ["llama-7b"]);
  assert.equal(searched(feed, "  ").length, 2);
});

test("a detail may be a sentence or lack all that is usual", () => {
  assert.equal(sentences({ kind: "Job Idle", detail: "idle since 10:00" }).what, "idle since 10:00");
  assert.equal(sentences({ kind: "Job Idle", detail: null }).what, "Job Idle");
  assert.deepEqual(["Job Failed", "Job Idle", "Job Completed", "Novel"].map(weightOf), ["trouble", "notice", "news", "news"]);
});

test("another number of instances changes that number alone", () => {
  const document = { version: 1, teams: [], pools: [{ name: "p5", capacity: { "ml.p5.48xlarge": 2 }, order: "fair" }, { name: "g5", capacity: { "ml.g5.xlarge": 3 }, spot_capacity: { "ml.g5.xlarge": 4 } }] };
  const more = changed(document, { [keyOf("g5", "spot_capacity", "ml.g5.xlarge")]: 5 });
  assert.deepEqual(more, { ...document, pools: [document.pools[0], { ...document.pools[1], spot_capacity: { "ml.g5.xlarge": 5 } }] });
  assert.equal(document.pools[1].spot_capacity["ml.g5.xlarge"], 4);
});

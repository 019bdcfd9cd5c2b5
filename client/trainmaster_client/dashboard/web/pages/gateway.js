// What this process is and did so far: where it calls, as whom, how often and how fast.

import { h, replace } from "../dom.js";
import { plainTable } from "../plain_table.js";

export const page = {
  title: "Gateway",
  refreshSeconds: 5,

  load(api, params, signal) {
    return api.local("gateway", {}, { signal });
  },

  render(root, said) {
    replace(
      root,
      h("h1", {}, "Gateway"),
      h("p", {}, "SageMaker's endpoint on this machine, with the queue behind it, and these pages."),
      facts(said),
      h("h2", {}, "Calls so far"),
      calls(Object.entries(said.operations ?? {})),
    );
  },
};

function facts(said) {
  const changes = said.changes ? "passed on" : "refused; start it with --allow-changes to pass them on";
  const rows = [
    ["Queue", said.api_url],
    ["SageMaker", `${said.sagemaker_url} (${said.region})`],
    ["Acts as", said.credentials],
    ["Process", `${said.pid}, ${said.memory_mb} MB at most`],
    ["Changes by these pages", changes],
  ];
  return h("dl", { class: "facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function calls(operations) {
  if (!operations.length) return h("p", { class: "state" }, "None.");
  const head = ["Call", "Times", "Errors", "Half within", "95 % within"];
  const rows = operations.map(([name, one]) => [
    name,
    one.calls,
    Object.entries(one.errors).map(([code, many]) => `${many}x ${code}`).join(", ") || "–",
    `${one.p50_ms} ms`,
    `${one.p95_ms} ms`,
  ]);
  return plainTable("Calls so far", head, rows);
}

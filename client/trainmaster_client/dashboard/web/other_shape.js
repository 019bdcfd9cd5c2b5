// Fewer or other instances for a waiting job: a dry run of each says when it would start, a copy of it is submitted.

import { asTeam, button, confirm } from "./actions.js";
import { h, replace } from "./dom.js";
import { copyOf, forecast, submission } from "./resubmit.js";

const MOST = 256; // instances that the field takes; the policy has the last word

export function otherShape(job, context) {
  return button("Other instances", "", () => ask(job, context));
}

async function ask(job, context) {
  let whole, pools;
  try {
    [whole, { pools }] = await Promise.all([
      context.api.get(`jobs/${encodeURIComponent(job.name)}`, { request: "true", estimate: "false" }),
      context.api.all("pools", {}, "pools"),
    ]);
  } catch (trouble) {
    context.say(trouble.detail ?? String(trouble));
    return;
  }
  const request = whole.request;
  const { InstanceType: type, InstanceCount: many } = request?.ResourceConfig ?? {};
  if (!type) {
    context.say("It asks for groups of instances, or its request is not known: submit another one.");
    return;
  }
  const types = [...new Set([type, ...pools.flatMap((pool) => [...Object.keys(pool.capacity ?? {}), ...Object.keys(pool.spot_capacity ?? {})])])];
  const offered = many > 1 ? type : (types[1] ?? type); // half of several, else another type
  const count = h("input", { id: "shape-count", type: "number", min: "1", max: String(MOST), step: "1", required: true, value: Math.max(1, Math.floor(many / 2)) });
  const kind = h("select", { id: "shape-type" }, types.map((one) => h("option", { value: one, selected: one === offered }, one)));
  const both = h("input", { type: "checkbox" });
  const expected = h("p", { role: "status" });
  const copy = () => shaped(request, job.name, { type: kind.value, count: Number(count.value), isEither: both.checked });
  const look = () => expect(count, copy, expected, { job, context });
  for (const field of [count, kind, both]) field.addEventListener("input", look);
  confirm(context, {
    title: `Other instances for ${job.name}?`,
    content: [
      h("p", { class: "row" }, h("label", { for: "shape-count" }, "Instances"), count, h("label", { for: "shape-type" }, "of"), kind),
      h("p", {}, h("label", { class: "check" }, both, `or ${many}x ${type}, whichever is free first`)),
      expected,
    ],
    consequence: ["A copy is submitted under a new name; this job stays in the queue until you cancel it."],
    label: "Submit the copy",
    kind: "primary",
    isReady: () => count.reportValidity(),
    ...submission(copy, context),
  });
  look();
}

export function shaped(request, name, { type, count, isEither }) {
  const again = copyOf(request, name);
  const before = request.ResourceConfig;
  again.ResourceConfig = { ...before, InstanceType: type, InstanceCount: count };
  const tags = (request.Tags ?? []).filter((tag) => tag.Key !== "trainmaster:alternatives");
  const both = { Key: "trainmaster:alternatives", Value: `${type}=${count} ${before.InstanceType}=${before.InstanceCount}` };
  again.Tags = isEither ? [...tags, both] : tags;
  return again;
}

async function expect(count, copy, into, { job, context }) {
  if (!count.checkValidity()) {
    replace(into, `A whole number from 1 to ${MOST}.`);
    return;
  }
  const asked = copy();
  const stamp = JSON.stringify(asked.ResourceConfig) + JSON.stringify(asked.Tags);
  into.dataset.stamp = stamp;
  replace(into, "Checking what that would do ...");
  const said = await context.api.change("POST", `add-job?dry_run=true${asTeam(job, context)}`, asked).catch((trouble) => ({ trouble }));
  if (into.dataset.stamp === stamp) replace(into, forecast(said));
}

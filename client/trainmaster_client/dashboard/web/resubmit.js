// A job's request once more under a new name: as the remedy of a failed one, with half the batch where memory was short.

import { asTeam, button, confirm } from "./actions.js";
import { h, replace } from "./dom.js";
import { clock, usd } from "./format.js";

const LONGEST_NAME = 63; // SageMaker API reference, CreateTrainingJob, TrainingJobName

export function remedy(job, failure, context) {
  if (!context.session.changes) return null;
  const isMemory = failure.class === "gpu-oom";
  return button(isMemory ? "Try again with half the batch" : "Try again", "primary", () => ask(job, isMemory, context));
}

async function ask(job, isMemory, context) {
  let request;
  try {
    request = (await context.api.get(`jobs/${encodeURIComponent(job.name)}`, { request: "true", estimate: "false" })).request;
  } catch (trouble) {
    context.say(trouble.detail ?? String(trouble));
    return;
  }
  const again = copyOf(request, job.name);
  const changed = isMemory ? halveBatch(again) : [];
  const expected = h("p", { role: "status" }, "Checking what that would do ...");
  confirm(context, {
    title: `Submit ${job.name} again?`,
    content: [
      h("p", {}, "As ", h("code", {}, again.TrainingJobName), changed.length ? `, with ${changed.join(" and ")}.` : ", as it was submitted."),
      isMemory && !changed.length ? h("p", { class: "warning" }, "No hyperparameter of it is called a batch: change it in your code.") : null,
      expected,
    ],
    consequence: [],
    label: "Submit it",
    kind: "primary",
    ...submission(() => again, context),
  });
  const said = await context.api.change("POST", `add-job?dry_run=true${asTeam(job, context)}`, again).catch((trouble) => ({ trouble }));
  replace(expected, forecast(said));
}

// The part of a question that submits the request which `made` gives once it is confirmed.
export function submission(made, context) {
  const key = Math.random().toString(36).slice(2); // of this dialog's one submission
  let sent = null;
  return {
    send: () => {
      sent ??= made();
      return context.api.change("POST", "add-job", sent, { key: `${sent.TrainingJobName}-${key}` });
    },
    done: () => `${sent.TrainingJobName} is submitted.`,
    then: () => context.navigate(`#/jobs/${encodeURIComponent(sent.TrainingJobName)}`),
  };
}

export function copyOf(request, name, longest = LONGEST_NAME) {
  const suffix = `-again-${Math.floor(Date.now() / 1000).toString(36).slice(-5)}`;
  return { ...request, TrainingJobName: `${name.slice(0, longest - suffix.length)}${suffix}` };
}

// Halves each hyperparameter that is called a batch, and says which.
function halveBatch(again) {
  const changed = [];
  const hyperparameters = { ...again.HyperParameters };
  for (const [key, value] of Object.entries(hyperparameters)) {
    const plain = String(value).replaceAll('"', "");
    const size = Number(plain);
    if (!/batch/i.test(key) || !Number.isInteger(size) || size < 2) continue;
    hyperparameters[key] = String(value).replace(plain, String(Math.floor(size / 2)));
    changed.push(`${key} ${Math.floor(size / 2)} in place of ${size}`);
  }
  if (changed.length) again.HyperParameters = hyperparameters;
  return changed;
}

export function forecast(said) {
  if (said.trouble) return `What it would do is unknown: ${said.trouble.detail}`;
  if (!said.valid) return `The policy would refuse it: ${(said.violations ?? []).map((one) => one.message).join("; ")}`;
  const start = said.estimated_start?.p50 ? `It would likely start at ${clock(said.estimated_start.p50)}` : "When it would start is unknown";
  const cost = said.estimated_cost_usd === null || said.estimated_cost_usd === undefined ? "" : ` and cost about ${usd(said.estimated_cost_usd)}`;
  return `${start}${cost}.`;
}

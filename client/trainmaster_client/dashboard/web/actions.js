// What may be changed, each asked about first with its consequence, and repeated or said where no answer came.

import { Trouble, TroubleKind, orMissing } from "./api.js";
import { h, replace } from "./dom.js";
import { clock, count, usd } from "./format.js";
import { isIn } from "./job_cells.js";
import { told } from "./showing.js";

const TRIES = 3;
const FIRST_PAUSE_MS = 800;
const LONGEST_WAIT_S = 60; // the API's limits count by the minute

// Buttons of a job, as its state and the session allow; none without --allow-changes. What each would do was
// put into words by the dashboard's process: questions by change.
export function jobActions(job, questions, context) {
  if (!context.session.changes) return [];
  const acts = { priority: ["Priority", "", priority], hold: ["Hold", "", holding(true)], release: ["Release", "", holding(false)], cancel: ["Cancel", "danger", cancel] };
  return Object.entries(acts)
    .filter(([change]) => !questions[change].is_vain && !(change === "hold" && job.state === "held"))
    .map(([change, [text, kind, act]]) => button(text, kind, () => act(job, questions[change], context)));
}

export function pauseButton(context, isPaused, waiting) {
  if (!context.session.changes || !context.me?.admin) return null;
  const label = isPaused ? "Resume starts" : "Pause starts";
  return button(label, isPaused ? "primary" : "danger", () => pause(context, isPaused, waiting));
}

export function button(text, kind, act) {
  return h("button", { type: "button", class: kind, "data-key": `act-${text}`, onclick: act }, text);
}

function cancel(job, { title, consequence }, context) {
  confirm(context, {
    title,
    consequence: [
      consequence,
      job.cost_usd === null || job.cost_usd === undefined ? "What it cost so far is unknown." : `It cost ${usd(job.cost_usd)} so far.`,
    ],
    label: "Cancel the job",
    kind: "danger",
    send: () => context.api.change("DELETE", `jobs/${encodeURIComponent(job.name)}`),
    hasHappened: (seen) => isIn("final", seen.state) || seen.state === "stopping",
    done: `${job.name} is being cancelled.`,
    job,
  });
}

// Holds or releases it.
const holding = (held) => (job, { title, consequence }, context) => confirm(context, {
  title,
  consequence: [consequence],
  label: held ? "Hold it" : "Release it",
  send: () => context.api.change("PATCH", `jobs/${encodeURIComponent(job.name)}`, { held }),
  hasHappened: (seen) => (seen.state === "held") === held,
  done: `${job.name} is ${held ? "held" : "released"}.`,
  job,
});

function pause(context, isPaused, waiting) {
  const wanted = !isPaused;
  confirm(context, {
    title: wanted ? "Pause all starts?" : "Resume starts?",
    consequence: wanted
      ? [`No job starts in any pool until starts are resumed; ${waitingSaid(waiting)} now. Running jobs continue; none is preempted.`]
      : [`Jobs start again, and may preempt others; ${waitingSaid(waiting)} now.`],
    label: wanted ? "Pause starts" : "Resume starts",
    kind: wanted ? "danger" : "primary",
    send: () => context.api.change("PUT", "policy/paused", { paused: wanted }),
    done: wanted ? "Starts are paused." : "Starts are resumed.",
  });
}

function waitingSaid(waiting) {
  return waiting === 1 ? "1 job waits" : `${count(waiting)} jobs wait`;
}

function priority(job, { consequence }, context) {
  const field = h("input", { type: "number", min: "0", max: "1000", step: "1", required: true, value: job.priority, id: "priority-value" });
  const expected = h("p", { role: "status" });
  const look = () => expect(job, field, expected, context);
  field.addEventListener("input", look);
  look();
  confirm(context, {
    title: `Priority of ${job.name}`,
    content: [h("label", { for: "priority-value" }, `0 to 1000; it is ${job.priority} now`), field, expected],
    consequence: [consequence],
    label: "Change it",
    kind: "primary",
    send: () => context.api.change("PATCH", `jobs/${encodeURIComponent(job.name)}`, { priority: Number(field.value) }),
    hasHappened: (seen) => seen.priority === Number(field.value),
    done: () => `${job.name} has priority ${field.value}.`,
    isReady: () => field.reportValidity(),
    job,
  });
}

// A dry run of the same request under the new priority: position, and whom it would preempt.
async function expect(job, field, into, context) {
  const value = field.value;
  if (!field.checkValidity()) {
    replace(into, "A whole number from 0 to 1000.");
    return;
  }
  if (isIn("live", job.state)) {
    replace(into, Number(value) < job.priority ? "It runs: a lower priority makes it easier to preempt." : "It runs: a higher priority makes it harder to preempt.");
    return;
  }
  replace(into, "Checking what that would do ...");
  const said = await trial(job, Number(value), context).catch((trouble) => `What it would do is unknown: ${trouble.detail ?? trouble}`);
  if (field.value === value) replace(into, said);
}

// An admin who is in no team asks for the job's.
export function asTeam(job, { me }) {
  return me?.admin && !me.teams?.some((one) => one.name === job.team) ? `&team=${encodeURIComponent(job.team)}` : "";
}

async function trial(job, value, context) {
  const whole = await orMissing(context.api.get(`jobs/${encodeURIComponent(job.name)}`, { request: "true", estimate: "false" }));
  if (!whole?.request) return "What it would do is unknown: this stack does not answer the job's request.";
  const tags = (whole.request.Tags ?? []).filter((tag) => tag.Key !== "priority");
  const request = { ...whole.request, TrainingJobName: trialName(job.name), Tags: [...tags, { Key: "priority", Value: String(value) }] };
  const said = await context.api.change("POST", `add-job?dry_run=true${asTeam(job, context)}`, request);
  if (!said.valid) return `The policy would refuse it: ${(said.violations ?? []).map((one) => one.message).join("; ")}`;
  const victims = (said.would_preempt ?? []).map((one) => one ?? "a job of another team");
  const start = said.estimated_start?.p50 ? ` A new job like it would likely start at ${clock(said.estimated_start.p50)}.` : "";
  const place = said.position ? `A new job like it would be at position ${said.position}` : "Its position is behind the first 1,000";
  return `${place}${victims.length ? ` and would preempt ${victims.join(", ")}` : ", and would preempt no job"}.${start}`;
}

function trialName(name) {
  return `${name.slice(0, 55)}-trial`.replace(/-+/g, "-");
}

// asked: {title, consequence: [text], content, label, kind, send(), hasHappened(job), done, then(), isReady(), job,
// route}: `route` is where the job is looked at again, "arrays" for one.
export function confirm(context, asked) {
  const said = h("p", { class: "state", role: "status" });
  const yes = h("button", { type: "submit", class: asked.kind ?? "" }, asked.label);
  const no = h("button", { type: "button", onclick: () => dialog.close() }, "Do nothing");
  const dialog = h("dialog", { "aria-labelledby": "confirm-title" },
    h("h2", { id: "confirm-title" }, asked.title),
    asked.content ?? null,
    asked.consequence.filter(Boolean).map((text) => h("p", {}, text)),
    said,
    h("form", { class: "buttons", onsubmit: (event) => submit(event) }, no, yes),
  );
  async function submit(event) {
    event.preventDefault();
    if (asked.isReady && !asked.isReady()) return;
    yes.disabled = true;
    replace(said, "Sending.");
    try {
      await sure(context, asked, (text) => replace(said, text));
    } catch (trouble) {
      replace(said, h("span", { class: "state-error" }, told(trouble), details(trouble)));
      yes.disabled = false;
      return;
    }
    dialog.close();
    context.say(typeof asked.done === "function" ? asked.done() : asked.done);
    if (asked.then) asked.then();
    else context.refresh();
  }
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function details(trouble) {
  const isSaid = (one) => trouble.detail.includes(one.message) && trouble.detail.includes(one.hint ?? "");
  const more = (trouble.errors ?? []).filter((one) => !isSaid(one)).map((one) => [one.message, one.hint].filter(Boolean).join("; "));
  return more.length ? h("ul", {}, more.map((text) => h("li", {}, text))) : null;
}

// No click is lost: where no answer came, the job is asked whether it happened, and the change is sent again.
export async function sure(context, asked, say = () => {}) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await asked.send();
    } catch (trouble) {
      const isUnsure = trouble instanceof Trouble && [TroubleKind.UNREACHABLE, TroubleKind.THROTTLED].includes(trouble.kind);
      if (await happened(context, asked, trouble)) return null;
      if (!isUnsure || attempt === TRIES) throw trouble;
      const asked_ = Math.min(trouble.retryAfter ?? 0, LONGEST_WAIT_S) * 1000;
      const pause_ = asked_ || FIRST_PAUSE_MS * 2 ** attempt;
      say(`${trouble.detail} Sending it again in ${Math.round(pause_ / 1000)} s (${attempt + 1} of ${TRIES}).`);
      await new Promise((resolve) => setTimeout(resolve, pause_));
    }
  }
}

// A 409 may be the echo of the first try, which was heard although its answer was not.
async function happened(context, asked, trouble) {
  if (!asked.job || !asked.hasHappened || ![409, 0, 500, 502, 503, 504].includes(trouble.status)) return false;
  const seen = await context.api.get(`${asked.route ?? "jobs"}/${encodeURIComponent(asked.job.name)}`, { estimate: "false" }).catch(() => null);
  return seen !== null && asked.hasHappened(seen);
}


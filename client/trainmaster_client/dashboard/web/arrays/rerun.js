// The failed tasks of an array once more, as a new array that resumes from their checkpoints.

import { button, confirm } from "../actions.js";
import { h } from "../dom.js";
import { copyOf } from "../resubmit.js";

const LONGEST_NAME = 56; // an array's, so that the largest index has room behind it
const MOST_SHOWN = 120;

// Null without --allow-changes, or where nothing failed.
export function rerunButton(array, context) {
  const { failed } = array.tasks;
  if (!context.session.changes || !failed) return null;
  return button(`Rerun ${failed} failed`, "", () => ask(array, context));
}

function ask(array, context) {
  const { TrainingJobName: name } = copyOf({}, array.name, LONGEST_NAME);
  const fresh = h("input", { type: "checkbox" });
  const indices = array.failed.length > MOST_SHOWN ? `${array.failed.slice(0, MOST_SHOWN)} …` : array.failed;
  confirm(context, {
    title: `Rerun ${array.tasks.failed} of ${array.tasks.total} tasks?`,
    content: [
      h("p", {}, "Tasks ", h("bdi", {}, indices.replaceAll(",", ", ")), " become the array ", h("code", {}, name), ", with their indices and values. They resume from their checkpoints."),
      h("p", {}, h("label", { class: "check" }, fresh, "begin from nothing instead")),
    ],
    consequence: [],
    label: "Rerun them",
    kind: "primary",
    send: () => context.api.change("POST", `arrays/${encodeURIComponent(array.name)}/rerun`, { tasks: "failed", name, fresh: fresh.checked }),
    job: { name },
    route: "arrays",
    hasHappened: (seen) => seen.rerun_of === array.name,
    done: `${name} is submitted.`,
    then: () => context.navigate(`#/arrays/${encodeURIComponent(name)}`),
  });
}

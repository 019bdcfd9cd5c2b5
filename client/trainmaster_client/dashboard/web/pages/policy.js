// Policy: for admins the document in force and what another one would do; for others the rules that bind them.

import { Trouble, TroubleKind, orMissing } from "../api.js";
import { h, replace } from "../dom.js";
import { PolicyEditor, errorList } from "../policy/editor.js";
import { policyOverview } from "../policy/overview.js";
import { PolicyRevisions } from "../policy/revisions.js";
import { rulesShown } from "../policy/rules.js";

export const page = {
  title: "Policy",
  refreshSeconds: 30,

  // `{policy, rules}`; `policy` is null for who is no admin, `rules` on an older stack.
  async load(api, params, signal) {
    const me = await orMissing(api.get("me", {}, { signal }));
    const [policy, rules] = await Promise.all([
      me && !me.admin ? null : forAdmins(api.get("policy", {}, { signal })),
      orMissing(api.get("rules", {}, { signal })),
    ]);
    return { policy, rules };
  },

  render(root, data, context) {
    const { state } = context;
    if (!state.top) {
      state.top = h("div", {});
      [state.editor, state.revisions] = [new PolicyEditor(), new PolicyRevisions()];
      state.rules = h("div", {});
      replace(root, h("h1", {}, page.title), state.top, state.rules, state.editor.element, state.revisions.element);
    }
    replace(state.top, data.policy ? [inForce(data.policy), policyOverview(data.policy.policy ?? data.policy)] : bound(data.rules));
    state.editor.element.hidden = state.revisions.element.hidden = !data.policy;
    if (data.policy) for (const part of [state.editor, state.revisions]) part.update(data.policy, context);
    replace(state.rules, data.rules ? rulesShown(data.rules, Boolean(data.policy)) : null);
  },
};

// Null for who is no admin.
export async function forAdmins(promise) {
  try {
    return await promise;
  } catch (trouble) {
    if (trouble instanceof Trouble && trouble.kind === TroubleKind.REFUSED && trouble.status === 403) return null;
    throw trouble;
  }
}

function inForce({ revision, paused, warnings }) {
  return [
    h("p", {}, "Revision ", h("b", {}, revision), " is in force."),
    paused ? h("p", { class: "warning" }, h("b", {}, "Paused: nothing starts and nothing is preempted."), " To resume: ", h("code", {}, "trainmaster policy resume")) : null,
    warnings?.length ? errorList(warnings, "warning") : null,
  ];
}

function bound(rules) {
  if (rules) return h("p", {}, `The rules of revision ${rules.revision} that bind you. The whole policy is for admins.`);
  return h("p", { class: "state" }, "The policy is for admins, and this stack is older than this page: it cannot say which rules bind you.");
}

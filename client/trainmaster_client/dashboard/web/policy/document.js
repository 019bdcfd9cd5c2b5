// From the text of a policy to its document: JSON here, YAML by the dashboard's own process.

import { Trouble, TroubleKind } from "../api.js";
import { h } from "../dom.js";

// Raises a Trouble that says line and column of what is wrong.
export async function parsedPolicy(api, text) {
  if (text.trimStart().startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch {
      // YAML in braces, perhaps
    }
  }
  const { policy } = await api.work("policy-document", { text });
  if (typeof policy !== "object" || policy === null) throw new Trouble(TroubleKind.REFUSED, "The text is not a document.");
  return policy;
}

// As its author wrote it; JSON, which YAML contains, where only the document is kept, or a text is not wanted.
export const textOf = ({ text, policy }, isTextWanted = true) => (isTextWanted && text) || `${JSON.stringify(policy, null, 2)}\n`;

const LOOKS = { "+": "added", "-": "removed" };

export function differenceShown(lines) {
  return h("pre", { class: "difference", tabindex: "0" }, lines.map(({ sign, text }) => h("span", { class: LOOKS[sign] ?? "same" }, `${sign} ${text}`)));
}

// From the text of a policy to its document: JSON here, YAML by the dashboard's own process.

import { Trouble, TroubleKind } from "../api.js";

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

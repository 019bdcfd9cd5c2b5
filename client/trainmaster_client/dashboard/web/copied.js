// A command that the reader may copy.

import { h, replace } from "./dom.js";

const SAID_MS = 1500;

export function command(text, say = () => {}) {
  const button = h("button", { type: "button", "data-key": `copy-${text}`, "aria-label": `Copy: ${text}`, onclick: copy }, "Copy");
  async function copy() {
    const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    replace(button, isCopied ? "Copied" : "Select it");
    say(isCopied ? "Copied." : "The browser does not let the page copy: select the command.");
    setTimeout(() => replace(button, "Copy"), SAID_MS);
  }
  return h("div", { class: "command" }, h("code", {}, text), button);
}

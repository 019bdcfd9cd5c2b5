// The keyboard: g and a letter for the pages, / for the search field, r to look again, ? for this list.

import { h } from "./dom.js";

const WITHIN_MS = 1200;
let prefixAt = -Infinity;

export function pressed(event, { pages, refresh }) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const page = performance.now() - prefixAt < WITHIN_MS ? pages.find((one) => one.key === event.key) : null;
  prefixAt = -Infinity;
  if (page) location.hash = `#/${page.path}`;
  else if (event.key === "g") prefixAt = performance.now();
  else if (event.key === "/") document.querySelector("[data-find]")?.focus();
  else if (event.key === "r") refresh();
  else if (event.key === "?") shortcuts(pages);
  else return;
  event.preventDefault();
}

function isTyping(element) {
  return element instanceof HTMLElement && (element.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName));
}

export function shortcuts(pages) {
  const rows = [
    ...pages.map(({ page, key }) => [`g ${key}`, page.title]),
    ["/", "find"],
    ["↑ ↓", "between rows, once one has the focus"],
    ["Enter", "open the row"],
    ["Esc", "close it"],
    ["r", "look again now"],
    ["?", "this list"],
  ];
  const list = h("dl", { class: "keys" }, rows.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]));
  const dialog = h("dialog", { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    list,
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

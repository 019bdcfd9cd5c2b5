// The page Money.

import { h, replace } from "../dom.js";

export const page = {
  title: "Money",
  refreshSeconds: 60,

  async load() {
    return {};
  },

  render(root) {
    replace(root, h("h1", {}, page.title), h("p", { class: "state" }, "This page is not there yet."));
  },
};

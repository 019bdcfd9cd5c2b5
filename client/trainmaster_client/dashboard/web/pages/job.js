// The page Job.

import { h, replace } from "../dom.js";

export const page = {
  title: "Job",
  refreshSeconds: 60,

  async load() {
    return {};
  },

  render(root) {
    replace(root, h("h1", {}, page.title), h("p", { class: "state" }, "This page is not there yet."));
  },
};

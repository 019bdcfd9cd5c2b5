// Each module of the pages can be read and linked: one that cannot leaves every page at "Loading".

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { test } from "node:test";

const WEB = new URL("../web/", import.meta.url);
const NEEDS_A_DOCUMENT = "app.js"; // it paints as soon as it is loaded
const modules = readdirSync(WEB, { recursive: true }).filter((path) => path.endsWith(".js"));

test("there are modules", () => assert.ok(modules.includes(NEEDS_A_DOCUMENT) && modules.length > 30));

for (const path of modules.filter((one) => one !== NEEDS_A_DOCUMENT)) {
  test(`${path} is linked`, () => import(new URL(path, WEB)));
}

test("the frame can be read", () => execFileSync(process.execPath, ["--check", new URL(NEEDS_A_DOCUMENT, WEB).pathname]));

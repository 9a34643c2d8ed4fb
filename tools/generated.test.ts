import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { settingsPages } from "./generate-settings.ts";

for (const { path, write } of settingsPages) {
  test(`${basename(path)} says what the code says`, () => {
    const remedy = "run node --conditions=source tools/generate-settings.ts";
    assert.equal(readFileSync(path, "utf8"), write(), remedy);
  });
}

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cliPage, writeCliReference } from "./generate-cli.ts";

void test("the page of the command line says what the verbs say", () => {
  const remedy = "run node --conditions=source tools/generate-cli.ts";
  assert.equal(readFileSync(cliPage, "utf8"), writeCliReference(), remedy);
});

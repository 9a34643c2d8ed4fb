import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as contracts from "./index.ts";
import { runForge } from "./forge.ts";

function run(args: readonly string[]): string {
  const { exitCode, output } = runForge(args);
  assert.equal(exitCode, 0, output);
  return output;
}

test("the Solidity sources are formatted (else: npm run forge -- fmt)", () => {
  run(["fmt", "--check"]);
});

test("the Solidity tests hold, and gas is what the snapshot says (else: npm run forge -- test)", () => {
  const output = run(["test", "--gas-snapshot-check", "true", "--gas-snapshot-emit", "false"]);
  assert.match(output, / 0 failed, 0 skipped/);
});

test("forge tests the very code that is deployed", () => {
  for (const { name, bytecode } of Object.values(contracts)) {
    const path = `../node_modules/.cache/forge/out/${name}.sol/${name}.json`;
    const artifact = JSON.parse(readFileSync(join(import.meta.dirname, path), "utf8")) as {
      bytecode: { object: string };
    };
    assert.ok(artifact.bytecode.object === bytecode, name);
  }
});

test("every line, statement, branch and function of the contracts is covered", () => {
  const rows = run(["coverage", "--report", "summary", "--gas-snapshot-emit", "false"])
    .split("\n")
    .filter((line) => line.startsWith("| contracts/src/"));
  assert.equal(rows.length, Object.values(contracts).length);
  for (const row of rows) assert.equal(row.match(/100\.00%/g)?.length, 4, row);
});

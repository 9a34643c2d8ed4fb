import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
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
  const given = ["--report", "summary", "--gas-snapshot-emit", "false"];
  // The written cases alone have to cover everything. Fuzzing has run before, with the optimizer, and so have tests of
  // large crews, which take half the time and cover no other lines.
  const large = "WithAnyCrew|AnySizeFollow|exactlyTheThreshold|aHundredMembers";
  const written = ["--fuzz-runs", "8", "--skip", "*Invariants*", "--no-match-test", large];
  const rows = run(["coverage", ...given, ...written])
    .split("\n")
    .filter((line) => line.startsWith("| contracts/src/"));
  assert.equal(
    rows.length,
    globSync("src/{,libraries/}*.sol", { cwd: import.meta.dirname }).length,
  );
  for (const row of rows) assert.equal(row.match(/100\.00%/g)?.length, 4, row);
});

test("a business costs at most what is promised", () => {
  const gas = { ...gasOf("BusinessFactoryTest"), ...gasOf("BusinessWalletTest") };
  const most = {
    "create with 3 members": 150_000,
    "create with 10 members": 185_000,
    "record 2 of 3": 75_000,
    // Above what any call costs.
    isValidSignature: 10_000,
  };
  for (const [name, limit] of Object.entries(most)) assert.ok(Number(gas[name]) <= limit, name);
});

function gasOf(name: string): Record<string, string> {
  const text = readFileSync(join(import.meta.dirname, `gas/${name}.json`), "utf8");
  return JSON.parse(text) as Record<string, string>;
}

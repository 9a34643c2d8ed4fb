import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { generateContracts, generatedPath } from "./build.ts";
import * as contracts from "./index.ts";

/** Without what the formatter decides: white space, trailing commas, quotes around names. */
const bare = (source: string): string => source.replaceAll(/[\s"]|,(?=\s*[}\]])/g, "");

test("the generated contracts are those of the sources (else: npm run contracts)", () => {
  assert.ok(bare(readFileSync(generatedPath, "utf8")) === bare(generateContracts()));
});

test("every contract has its name, interface, code and the hash of its code", () => {
  assert.deepEqual(
    Object.values(contracts).map(({ name }) => name),
    ["CredentialRegistry", "Settlement"],
  );
  for (const { abi, bytecode, deployedBytecodeHash } of Object.values(contracts)) {
    assert.ok(abi.length > 0);
    assert.match(bytecode, /^0x(?:[0-9a-f]{2})+$/);
    assert.match(deployedBytecodeHash, /^0x[0-9a-f]{64}$/);
  }
});

test("no contract delegates, calls by a caller's word or destroys itself", () => {
  for (const path of ["src/CredentialRegistry.sol", "src/Settlement.sol"]) {
    const source = readFileSync(join(import.meta.dirname, path), "utf8");
    assert.doesNotMatch(source, /delegatecall|selfdestruct|\.call\b|assembly|unchecked/);
  }
});

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { generateContracts, generatedPath } from "./build.ts";
import * as contracts from "./index.ts";

/** The text without what the formatter changes: white space, trailing commas, quotes around names. */
const bare = (source: string): string => source.replaceAll(/[\s"]|,(?=\s*[}\]])/g, "");

test("the generated contracts are those of the sources (else: npm run contracts)", async () => {
  assert.ok(bare(readFileSync(generatedPath, "utf8")) === bare(await generateContracts()));
});

test("every contract has its name, interface, code and the hash of its code", () => {
  assert.deepEqual(
    Object.values(contracts).map(({ name }) => name),
    ["BusinessFactory", "BusinessWallet", "CredentialRegistry", "Settlement"],
  );
  for (const contract of Object.values(contracts)) {
    assert.ok(contract.abi.length > 0);
    assert.match(contract.bytecode, /^0x(?:[0-9a-f]{2})+$/);
    assert.match(contract.deployedBytecodeHash, /^0x[0-9a-f]{64}$/);
    assert.equal("immutablesAt" in contract, contract.name === "BusinessFactory");
  }
});

test("no contract delegates, calls by a caller's word or destroys itself", () => {
  for (const path of globSync("src/*.sol", { cwd: import.meta.dirname })) {
    const source = readFileSync(join(import.meta.dirname, path), "utf8");
    assert.doesNotMatch(source, /delegatecall|selfdestruct|\.call\b|assembly|unchecked/);
  }
});

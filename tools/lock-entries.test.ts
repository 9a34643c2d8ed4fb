import assert from "node:assert/strict";
import { test } from "node:test";
import { addMissing, withoutEngines, withoutUnpinned } from "./lock-entries.ts";

test("npm is asked again for each package without a hash, and for no workspace", () => {
  const kept = {
    "": { version: "1.0.0" },
    "packages/wallet": { version: "1.0.0" },
    "node_modules/@svc/wallet": { link: true },
    "node_modules/good": { version: "1.0.0", integrity: "sha512-x" },
  };
  const unpinned = { "packages/wallet/node_modules/bad": { version: "1.0.0" } };
  const lock = { lockfileVersion: 3, packages: { ...kept, ...unpinned } };
  assert.deepEqual(withoutUnpinned(lock), { lockfileVersion: 3, packages: kept });
});

test("no package is left out for the Node that npm runs on", () => {
  const tool = { version: "1.0.0", integrity: "sha512-x", optional: true };
  const lock = { packages: { "node_modules/tool": { ...tool, engines: { node: ">=20" } } } };
  assert.deepEqual(withoutEngines(lock), { packages: { "node_modules/tool": tool } });
});

test("each optional package of a platform that the registry lacks gets an entry that only its platform installs", () => {
  const known = { version: "2.0.0", integrity: "sha512-x" };
  const tool = {
    version: "1.0.0",
    dev: true,
    optionalDependencies: {
      "@tool/linux-x64": "2.0.0",
      "@tool/binding-linux-arm64-musl": "2.0.0",
      "@tool/binding-linux-x64-gnu": "2.0.0",
      "tool-darwin-amd64": "2.0.0",
      "tool-ranged-linux-x64": "^2.0.0",
      "tool-linux": "2.0.0",
      "fast-x64": "2.0.0",
    },
  };
  const lock = {
    packages: {
      "node_modules/tool": tool,
      "node_modules/@tool/linux-x64": known,
      "node_modules/other": { version: "1.0.0", optionalDependencies: { "o-win32-ia32": "3.0.0" } },
    },
  };
  const names = [
    "@tool/binding-linux-arm64-musl",
    "@tool/binding-linux-x64-gnu",
    "tool-darwin-amd64",
  ];
  const added = addMissing(lock);
  assert.deepEqual(added, [...names.map((name) => `${name}@2.0.0`), "o-win32-ia32@3.0.0"]);
  const entry = { version: "2.0.0", dev: true, optional: true };
  assert.deepEqual(lock.packages, {
    "node_modules/tool": tool,
    "node_modules/@tool/linux-x64": known,
    "node_modules/other": lock.packages["node_modules/other"],
    [`node_modules/${names[0]}`]: { ...entry, os: ["linux"], cpu: ["arm64"], libc: ["musl"] },
    [`node_modules/${names[1]}`]: { ...entry, os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
    [`node_modules/${names[2]}`]: { ...entry, os: ["darwin"], cpu: ["x64"] },
    "node_modules/o-win32-ia32": {
      ...entry,
      version: "3.0.0",
      dev: false,
      os: ["win32"],
      cpu: ["ia32"],
    },
  });
});

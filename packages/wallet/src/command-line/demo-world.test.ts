import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import { openClock, readDemoWorld } from "./demo-world.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-wallet-demo-"));
using cleanup = new DisposableStack();
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));

const machineNow = 1_900_000_000;
const laterSeconds = 90_000;

/** By how many seconds the clock of a demo at this address is ahead of this machine's. */
async function aheadOf(baseUrl: string | null, now: unknown): Promise<number> {
  const told = mock.method(globalThis, "fetch", async () => Response.json({ now }));
  const machine = mock.method(Date, "now", () => machineNow * 1000 + 999);
  try {
    const clock = openClock(baseUrl === null ? null : { baseUrl, identities: new Map() });
    await clock();
    return (await clock()) - machineNow;
  } finally {
    assert.ok(told.mock.callCount() <= 1);
    told.mock.restore();
    machine.mock.restore();
  }
}

await test("the clock is that of a demo on this machine, and of no other: it says what is past its deadline", async () => {
  const later = machineNow + laterSeconds;
  for (const [baseUrl, now, isFollowed] of [
    ["http://localhost:4000", later, true],
    ["http://127.0.0.1:4000", later, true],
    ["http://[::1]:4000", later, true],
    [null, later, false],
    ["https://demo.example", later, false],
    ["https://localhost.example", later, false],
    ["http://localhost:4000", String(later), false],
    ["http://localhost:4000", later + 0.5, false],
    ["http://localhost:4000", undefined, false],
  ] as const) {
    const ahead = await aheadOf(baseUrl, now);
    assert.equal(ahead, isFollowed ? laterSeconds : 0, `${baseUrl} ${now}`);
  }
});

await test("a demo world lists those whose keys it has, and what describes none is told by its path", () => {
  const path = join(directory, "demo.json");
  const baseUrl = "http://localhost:4000";
  assert.equal(readDemoWorld(directory), null);
  const alice = { address: `0x${"a1".repeat(20)}`, privateKey: `0x${"01".repeat(32)}` };
  const others = { bob: { address: alice.address }, carol: { privateKey: "0x" }, dave: null };
  writeFileSync(path, JSON.stringify({ baseUrl, identities: { alice, ...others } }));
  const world = readDemoWorld(directory);
  assert.deepEqual(world, { baseUrl, identities: new Map([["alice", alice]]) });
  for (const text of ["", "{}", JSON.stringify({ baseUrl }), '{"identities":{}}']) {
    writeFileSync(path, text);
    assert.throws(() => readDemoWorld(directory), new Error(`${path} is not a demo world`));
  }
});

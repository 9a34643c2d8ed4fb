import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { callWallet } from "../test/call-wallet.ts";
import { digits, loginId, openFakeBroker, privateKeys } from "../test/fake-broker.ts";
import { issue, serveFields } from "../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";

await using broker = await openFakeBroker();
const path = `/w/l/${loginId}`;

type Fault = number | "lost";

/** Answers to calls of that path are lost, or replaced by one with that status, after the broker has taken them. */
const faulty =
  (ending: string, faults: Fault[]): typeof fetch =>
  async (url, init) => {
    const answer = await fetch(url, init);
    const fault = answer.url.endsWith(ending) ? faults.shift() : undefined;
    if (fault === "lost") throw new TypeError("the connection broke");
    return fault === undefined ? answer : new Response("{}", { status: fault });
  };

/** Ends pauses of a second or more at once. @returns those that there were */
function hurry(t: TestContext): number[] {
  const pausesMs: number[] = [];
  const plain = globalThis.setTimeout;
  const hurried = (
    done: (...given: unknown[]) => void,
    ms: number,
    ...given: unknown[]
  ): unknown => {
    // Those of the platform's own fetch have more to pass on.
    if (ms < 1000 || given.length > 0) return plain(done, ms, ...given);
    pausesMs.push(ms);
    return queueMicrotask(done);
  };
  t.mock.method(globalThis, "setTimeout", hurried as typeof setTimeout);
  return pausesMs;
}

async function approve(faults: Fault[]): Promise<unknown> {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url], { fetch: faulty(path, faults) });
  const outcome = await wallet.approve(broker.qrLink(), { code: digits });
  return outcome.kind === "delivered" && outcome.status;
}

await test("an answer that a broker cannot take, or may have taken, is sent again as it was, three times in all", async (t) => {
  const pausesMs = hurry(t);
  assert.equal(await approve([503, "lost"]), 200);
  const [first, ...more] = broker.received.filter((each) => each.path === path);
  assert.deepEqual(more, [first, first]);
  assert.equal(await approve([503, 503, 503]), 503);
  assert.equal(await approve([502, 504]), 200, "a gateway got no answer");
  assert.equal(await approve([500]), 500, "that is no fault that passes");
  assert.deepEqual(pausesMs.splice(4), [1000, 5000]);
  assert.deepEqual(pausesMs, [1000, 5000, 1000, 5000]);
  // The broker takes eight seconds to say so: after the second time there is no third.
  const sent = () => broker.received.filter((each) => each.path === path).length;
  const clock = t.mock.method(performance, "now", () => sent() * 8000);
  assert.equal(await approve([503, 503, 503]), 503);
  assert.deepEqual(pausesMs.splice(4), [1000]);
  // Even if a timer is some milliseconds early, a call that hung is not repeated.
  clock.mock.mockImplementation(() => sent() * 14_990);
  await refuses(approve(["lost"]), "unreachable");
  assert.equal(pausesMs.length, 4);
});

await test("whoever waits at a terminal is told at once that the broker is asked again, and a program reads one line as ever", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-wallet-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const identities = { alice: { address: addressOf("alice"), privateKey: privateKeys.alice } };
  writeFileSync(join(directory, "demo.json"), JSON.stringify({ baseUrl: broker.url, identities }));
  broker.reset();
  broker.answers.set("/health/ready", { status: 200, body: { status: "ok", now: 1_000_030 } });
  broker.answers.set(path, { status: 503, body: {} });
  const pausesMs = hurry(t);
  const args = ["approve", broker.qrLink(), "--as", "alice", "--code", digits];
  const { err } = await callWallet(args, directory, { isWatched: true });
  assert.equal(pausesMs.length, 2);
  const [first, ...outcome] = err.split("\n");
  const host = new URL(broker.url).host;
  const said = `${host} cannot take it now: it is asked again, for some seconds`;
  assert.equal(first, `wallet approve: ${said}`);
  assert.equal((await callWallet(args, directory)).err, outcome.join("\n"));
});

await test("what was left is picked up also where the answer that held it is lost, by that reader alone", async (t) => {
  const fields = serveFields(broker);
  broker.reset();
  fields.issued = [issue(addressOf("alice"), { EMAIL: "alice@example.com" })];
  const left = await (await walletOf("alice", [broker.url])).approve("svc:?attr=email&exp=5");
  assert.ok(left.kind === "left");
  const pausesMs = hurry(t);
  const bob = await walletOf("bob", [broker.url], { fetch: faulty("/take", ["lost", 503]) });
  assert.equal((await bob.pickUp(left.link))["svcID"], addressOf("alice"));
  assert.equal(pausesMs.length, 2);
  await refuses(bob.pickUp(left.link), "broker_refused", /mailbox_empty/);
});

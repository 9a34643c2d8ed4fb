// kill -9 of the service at every write of a data request: of its create, of a vote, of the release and of a
// cancellation; and of a signature request until it is signed. Another process goes on, callers repeat themselves, and
// nothing is released, charged or recorded twice. Of the writes of one transaction the first and the last stand for all.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "@svc/protocol";
import {
  type CrashPoint,
  type Gates,
  type GateTime,
  openGates,
  pointsAt,
  whenOf,
} from "../crash-gates.ts";
import { openContextOf } from "../embedded-chain.ts";
import { type DataWorld, openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import type { Answer, InboxItem } from "../kyb-world.ts";
import { patienceMs } from "../patience.ts";

const announced = (status: string): Omit<CrashPoint, "name"> => ({
  on: "insert on webhook_event",
  when: `new.kind = 'kyb.data_request.${status}'`,
});
const moved = (kind: string): Omit<CrashPoint, "name"> => ({
  on: "insert on ledger_movement",
  when: `new.kind = '${kind}'`,
});
const ended = (status: string): Omit<CrashPoint, "name"> => ({
  on: "update on data_request",
  when: `new.status = '${status}' and old.status = 'pending_approval'`,
});

const points: readonly CrashPoint[] = [
  { name: "create: the key is taken", on: "insert on kyb_idempotency", when: "true" },
  {
    name: "create: the money is kept back",
    on: "insert on ledger_hold",
    when: "true",
    isSeen: true,
  },
  { name: "vote: the optional fields are fixed", on: "update on ballot", when: "old.hash is null" },
  { name: "vote: it is written", on: "insert on ballot_vote", when: "true", isSeen: true },
  {
    name: "vote: the release is ordered",
    on: "update on data_request",
    when: "new.approved_at is not null and old.approved_at is null",
    isSeen: true,
  },
  { name: "release: the request ends", ...ended("released") },
  { name: "release: the charge is written", on: "insert on kyb_charge", when: "true" },
  { name: "release: it is announced", ...announced("released") },
  { name: "release: the money is captured", ...moved("capture"), isSeen: true },
  { name: "cancel: the request ends", ...ended("cancelled") },
  // A release frees what was held for the optional field; here nothing is optional.
  { name: "cancel: the money is free", ...moved("free"), isSeen: true },
  {
    name: "signature: the request is written",
    on: "insert on signature_request",
    when: "true",
    isSeen: true,
  },
  {
    name: "signature: the recording is ordered",
    on: "insert on chain_transaction",
    when: "new.kind = 'business.record'",
    isSeen: true,
  },
  {
    name: "signature: the recording is sent",
    on: "update on chain_transaction",
    when: "new.kind = 'business.record' and new.status = 'sent' and old.status = 'queued'",
  },
  {
    name: "signature: it is signed",
    on: "update on signature_request",
    when: "new.status = 'signed' and old.status = 'pending_approval'",
  },
];

const processName = "svc-under-test";
const members = ["alice", "bob", "carol"];
const oneFranc = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };

/** Asks again until somebody answers. */
async function insist(call: () => Promise<Answer>): Promise<Answer> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    // Nobody listens, or an answer breaks off, while the processes change.
    const answer = await call().catch((error: unknown) => {
      if (error instanceof TypeError || error instanceof SyntaxError) return null;
      throw error;
    });
    if (answer !== null && answer.status !== 503) {
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      return answer;
    }
    assert.ok(performance.now() < deadline, "nobody answers");
    await delay(50);
  }
}

interface Played {
  readonly path: string;
  readonly business: Address;
  readonly terms: object;
  readonly end: "released" | "cancelled" | "signed";
}

/** What dies at this point. */
function playedAt(world: DataWorld, { name }: CrashPoint, business: Address): Played {
  if (name.startsWith("signature")) {
    const signed = {
      path: signaturesPath,
      business: world.business.address,
      end: "signed",
    } as const;
    return { ...signed, terms: { ...someText, message: name } };
  }
  const end = name.startsWith("cancel") ? "cancelled" : "released";
  return { path: requestsPath, business, terms: { ...oneFranc, purpose: someText.purpose }, end };
}

/** One request from its create to its end; every caller repeats itself word for word. @returns its id */
async function runRequest(world: DataWorld, played: Played, key: string): Promise<string> {
  const { path, business, terms, end } = played;
  const asked = await insist(async () => {
    const headers = { "idempotency-key": `create-${key}` };
    const body = { ...terms, businessWalletAddress: business };
    return world.call("POST", path, { body, headers });
  });
  const id = String(asked.body["requestId"]);
  await vote(world, "alice", id);
  if (end !== "cancelled") await vote(world, "bob", id);
  else
    await insist(async () => {
      const headers = { "idempotency-key": `cancel-${key}` };
      return world.call("POST", `${path}/${id}/cancel`, { body: {}, headers });
    });
  return id;
}

/** Two events of the request, and one recording of a signature. */
async function checkEnd(gates: Gates, { end }: Played, id: string): Promise<void> {
  const events = await gates.query("select sequence from webhook_event where stream_id = $1", [id]);
  assert.equal(events.length, 2);
  const recordings = await gates.query(
    "select 1 from chain_transaction where kind = 'business.record' and subject_id like $1 || '.%'",
    [id],
  );
  assert.equal(recordings.length, end === "signed" ? 1 : 0);
}

/** What is voted on is kept: once the vote is in, it lies in the inbox no more. */
async function vote(world: DataWorld, name: string, id: string): Promise<void> {
  let item: InboxItem | null = null;
  await insist(async () => {
    item ??= await world.findVote(name, id);
    return world.voteAs(name, id, { item });
  });
}

/** The server under test dies at every point, and each time another one goes on. */
async function dieEverywhere(t: TestContext, time: GateTime): Promise<void> {
  await using world = await openDataWorld();
  const businesses = await insertBusinesses(world, points.length, members);
  // Their sessions are open before anything dies.
  await Promise.all(members.map(async (name) => world.inboxOf(name)));
  const { databaseUrl } = world.ctx.config;
  assert.ok(databaseUrl !== null);
  await world.service.close();
  await using ctx = await openContextOf(databaseUrl);
  await using gates = await openGates(databaseUrl, { points, time, processName });
  const start = async () =>
    world.startProcess({ PGAPPNAME: processName }, { port: Number(new URL(world.baseUrl).port) });
  let server = await start();
  let charged = 0;
  for (const [index, point] of pointsAt(points, time).entries()) {
    const title = `the request ends once where the service dies ${whenOf(time)} it commits "${point.name}"`;
    await t.test(title, async () => {
      const played = playedAt(world, point, businesses[index] as Address);
      await gates.close(point);
      const over = runRequest(world, played, String(index));
      over.catch(() => undefined);
      await gates.untilReached(point);
      await server.kill();
      await gates.open(point);
      server = await start();
      const id = await over;
      await world.until(`${id} has ended`, async () => {
        const { body } = await insist(async () => world.call("GET", `${played.path}/${id}`));
        return body["status"] === played.end ? true : null;
      });
      await checkEnd(gates, played, id);
      await checkMoney(ctx);
      if (played.end === "released") charged += 1;
      const { body } = await world.call("GET", "/api/v1/kyb/billing/account");
      assert.deepEqual([body["spentChf"], body["frozenChf"]], [charged, 0]);
    });
  }
  await server[Symbol.asyncDispose]();
}

await test(
  "a data request survives kill -9 at every write, and a signature request until it is signed",
  { concurrency: true },
  async (t) => {
    const before = t.test(
      "a write that is killed before it is committed is done again, by another process",
      async (each) => dieEverywhere(each, "statement"),
    );
    const after = t.test(
      "a write that is killed after it is committed and before anybody is told is not done again",
      async (each) => dieEverywhere(each, "commit"),
    );
    await Promise.all([before, after]);
  },
);

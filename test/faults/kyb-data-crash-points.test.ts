// kill -9 of the service at every write of a data request: of its create, of a vote, of the release and of a
// cancellation; and of a signature request until it is signed. One kill meets as many requests, each at a write of its
// own, as one process can work on at once. Another process goes on, callers repeat their calls, and nothing is
// released, charged or recorded twice. Of the writes of one transaction only the first and the last are tried.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "@svc/protocol";
import { type CrashPoint, type Gates, killAt, openGates, whenOf } from "../crash-gates.ts";
import { openContextOf } from "../embedded-chain.ts";
import {
  type DataWorld,
  openDataWorld,
  registerEndpoint,
  requestsPath,
} from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { addMerchant } from "../kyb-merchant.ts";
import type { Answer, InboxItem } from "../kyb-world.ts";
import { patienceMs } from "../patience.ts";
import type { ServerProcess } from "../world.ts";

const freed = "cancel: the money is free";
/** Steps that callers cause, each met by a request of its own, in the order in which a request reaches them. */
const called: readonly CrashPoint[] = [
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
    name: "cancel: the request ends",
    on: "update on data_request",
    when: "new.status = 'cancelled' and old.status = 'pending_approval'",
  },
  // A release frees what was held for the optional field; here nothing is optional.
  { name: freed, on: "insert on ledger_movement", when: "new.kind = 'free'", isSeen: true },
];
/** Steps of the job of releases and of the outbox: one of each at a time. */
const first: readonly CrashPoint[] = [
  {
    // The last write of the transaction that also writes the end and the charge.
    name: "release: the request ends, its charge is written, and it is announced",
    on: "insert on webhook_event",
    when: "new.kind = 'kyb.data_request.released'",
  },
  {
    name: "signature: the recording is sent",
    on: "update on chain_transaction",
    when: "new.kind = 'business.record' and new.status = 'sent' and old.status = 'queued'",
  },
];
const second: readonly CrashPoint[] = [
  {
    name: "release: the money is captured",
    on: "insert on ledger_movement",
    when: "new.kind = 'capture'",
    isSeen: true,
  },
  {
    name: "signature: it is signed",
    on: "update on signature_request",
    when: "new.status = 'signed' and old.status = 'pending_approval'",
  },
];
/** The steps that each kill meets. */
const kills = [[...called, ...first], second];

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
  readonly apiKey: string;
  readonly path: string;
  readonly business: Address;
  readonly terms: object;
  readonly end: "released" | "cancelled" | "signed";
}

/** The request that is under way when the service dies at this point. */
function playedAt({ world, businesses, other }: Stage, { name }: CrashPoint): Played {
  if (name.startsWith("signature")) {
    const business = world.business.address;
    const terms = { ...someText, message: name };
    return { apiKey: world.apiKey, path: signaturesPath, business, terms, end: "signed" };
  }
  const business = businesses.pop();
  assert.ok(business !== undefined);
  const terms = { ...oneFranc, purpose: someText.purpose };
  const end = name.startsWith("cancel") ? "cancelled" : "released";
  // Until this step commits, it locks the money of its organization, so it gets one of its own.
  const apiKey = name === freed ? other : world.apiKey;
  return { apiKey, path: requestsPath, business, terms, end };
}

/** Runs a request from its create to its end, repeating each unanswered call unchanged. @returns its id */
async function runRequest(world: DataWorld, played: Played): Promise<string> {
  const { apiKey, path, business, terms, end } = played;
  const key = randomUUID();
  const asked = await insist(async () => {
    const headers = { "idempotency-key": `create-${key}` };
    const body = { ...terms, businessWalletAddress: business };
    return world.call("POST", path, { apiKey, body, headers });
  });
  const id = String(asked.body["requestId"]);
  await vote(world, "alice", id);
  if (end !== "cancelled") await vote(world, "bob", id);
  else
    await insist(async () => {
      const headers = { "idempotency-key": `cancel-${key}` };
      return world.call("POST", `${path}/${id}/cancel`, { apiKey, body: {}, headers });
    });
  return id;
}

/** Checks that the request has two events, and a signed one exactly one recording. */
async function checkEnd(gates: Gates, { end }: Played, id: string): Promise<void> {
  const events = await gates.query("select sequence from webhook_event where stream_id = $1", [id]);
  assert.equal(events.length, 2);
  const recordings = await gates.query(
    "select 1 from chain_transaction where kind = 'business.record' and subject_id like $1 || '.%'",
    [id],
  );
  assert.equal(recordings.length, end === "signed" ? 1 : 0);
}

/** The item is kept across retries: once the vote is stored, it is no longer in the inbox. */
async function vote(world: DataWorld, name: string, id: string): Promise<void> {
  let item: InboxItem | null = null;
  await insist(async () => {
    item ??= await world.findVote(name, id);
    return world.voteAs(name, id, { item });
  });
}

/** Another merchant, with money of its own. @returns its API key */
async function openOther(world: DataWorld): Promise<string> {
  const entitlements = ["kyb:data-request"];
  const { apiKey } = await addMerchant(world, { entitlements, fundsRappen: 1_000n });
  await registerEndpoint(world, apiKey);
  return apiKey;
}

interface Stage {
  readonly world: DataWorld;
  /** Businesses without any request so far. */
  readonly businesses: Address[];
  /** Another merchant's API key. */
  readonly other: string;
  readonly gates: Gates;
  /** kill -9 of the service. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

const told = (point: CrashPoint): string => `${whenOf(point)} it commits "${point.name}"`;

/** Kills the service inside all these steps at once, and starts another process. */
async function dieAt(stage: Stage, points: readonly CrashPoint[]): Promise<Played[]> {
  const { world, gates } = stage;
  const stops = points.map((point) => ({
    point,
    async work() {
      const played = playedAt(stage, point);
      return { played, id: await runRequest(world, played) };
    },
  }));
  const over = await killAt(gates, stops, async () => stage.kill());
  await stage.start();
  const runs = await Promise.all(over);
  await Promise.all(
    runs.map(async ({ played, id }) => {
      const { apiKey, path, end } = played;
      await world.until(`${id} has ended`, async () => {
        const { body } = await insist(async () => world.call("GET", `${path}/${id}`, { apiKey }));
        return body["status"] === end ? true : null;
      });
    }),
  );
  for (const { played, id } of runs) await checkEnd(gates, played, id);
  return runs.map(({ played }) => played);
}

await test("a data request survives kill -9 at every write, and a signature request until it is signed: what was not committed is done again by another process, what was is not", async (t) => {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openDataWorld());
  const points = kills.flat();
  const businesses = await insertBusinesses(world, points.length, members);
  const other = await openOther(world);
  // Their sessions are open before anything dies.
  await Promise.all(members.map(async (name) => world.inboxOf(name)));
  const { databaseUrl } = world.ctx.config;
  assert.ok(databaseUrl !== null);
  await world.service.close();
  const ctx = stack.use(await openContextOf(databaseUrl));
  const gates = stack.use(await openGates(databaseUrl, { points, processName, isEndless: true }));
  const port = Number(new URL(world.baseUrl).port);
  // Every held step keeps a connection.
  const settings = { PGAPPNAME: processName, DATABASE_CONNECTIONS: "20" };
  const start = async (): Promise<ServerProcess> =>
    stack.use(await world.startProcess(settings, { port }));
  let server = await start();
  const stage: Stage = {
    world,
    businesses,
    other,
    gates,
    kill: async () => server.kill(),
    async start() {
      server = await start();
    },
  };
  let charged = 0;
  for (const at of kills)
    await t.test(
      `every request ends once where the service dies ${at.map(told).join(", and ")}`,
      async () => {
        const played = await dieAt(stage, at);
        await checkMoney(ctx);
        charged += played.filter(({ end }) => end === "released").length;
        for (const [apiKey, spent] of [
          [world.apiKey, charged],
          [other, 0],
        ] as const) {
          const { body } = await world.call("GET", "/api/v1/kyb/billing/account", { apiKey });
          assert.deepEqual([body["spentChf"], body["frozenChf"]], [spent, 0]);
        }
      },
    );
});

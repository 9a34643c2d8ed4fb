// The merchant learns neither voters nor tally: whoever voted, and however many, every byte that it can get is the same.
// Ids, hashes and signatures are replaced by their kind, and times by their distance from the request's creation.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { suspendBusiness } from "../../service/src/kyb/business/standing.ts";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { openReceiver } from "../kyb-receiver.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import type { Answer } from "../kyb-world.ts";

const everybody = ["alice", "bob", "carol", "dave", "erin"];
const daySeconds = 86_400;

await using receiver = await openReceiver();
await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx } = world;
const endpoint = await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
  body: { url: receiver.url },
});
assert.equal(endpoint.status, 200);
receiver.trust(endpoint.body["secret"]);

interface Votes {
  readonly approve?: readonly string[];
  readonly reject?: readonly string[];
}

/** What the merchant holds of one request. */
interface Asked {
  readonly path: string;
  readonly id: string;
  readonly business: Address;
  readonly createdAt: number;
  /** Repeats the create. @param key the Idempotency-Key of the first create, or another */
  again(key: string): Promise<Answer>;
}

const bodies: Readonly<Record<string, object>> = {
  [requestsPath]: {
    fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"],
    optionalFields: ["BUSINESS_DIRECTOR_COUNT"],
    purpose: "To open an account for the company",
  },
  [signaturesPath]: someText,
};

/** Creates a request and waits until its creation is delivered. */
async function ask(path: string, business: Address): Promise<Asked> {
  const again = async (key: string): Promise<Answer> =>
    world.call("POST", path, {
      headers: { "idempotency-key": `${key}-${business}` },
      body: { businessWalletAddress: business, ...bodies[path] },
    });
  const { status, body } = await again("first");
  assert.equal(status, 201, JSON.stringify(body));
  const [id, createdAt] = [String(body["requestId"]), Number(body["createdAt"])];
  const asked = { path, id, business, createdAt, again };
  await untilDelivered(asked);
  return asked;
}

async function cast(id: string, { approve = [], reject = [] }: Votes): Promise<void> {
  for (const name of approve) await world.voteAs(name, id, { optional: [] });
  for (const name of reject) await world.voteAs(name, id, { vote: "reject" });
}

/** Replaces times by rough phases, so that the speed of the machine does not show. */
function momentOf(seconds: number): string {
  if (seconds === daySeconds) return "<a day later>";
  // Or before it: a test has all of its businesses when it asks the first of them.
  if (seconds < 60) return "<at the beginning>";
  if (seconds > daySeconds && seconds < daySeconds + 60) return "<after a day>";
  const sinceMonth = seconds - 30 * daySeconds;
  return sinceMonth >= 0 && sinceMonth < 60
    ? "<a month later>"
    : `<${Math.round(seconds / 60)} minutes>`;
}

function plain(text: string, { business, createdAt, id }: Asked): string {
  const known = new Map([[id, "<request>"]]);
  const nameOf = (found: string): string => {
    known.set(found, known.get(found) ?? `<id ${known.size}>`);
    return known.get(found) ?? "";
  };
  return (
    text
      .replaceAll(/eyJ[\w-]+\.([\w-]+)\.[\w-]+/g, (_, claims: string) =>
        Buffer.from(claims, "base64url").toString(),
      )
      .replaceAll(business, "<business>")
      .replaceAll(business.slice(2), "<business>")
      .replaceAll(/req_[0-9a-f]+/g, "<call>")
      .replaceAll(/0x[0-9a-f]{64}/g, "<hash>")
      // By chance the id looks like a time.
      .replaceAll(/"(chainId)":\d+/g, '"$1":0')
      .replaceAll(/\bv1[=,][\w+/]+=*/g, "<signature>")
      .replaceAll(/"(durationMs)":\d+/g, '"$1":0')
      .replaceAll(/,"nextCursor":"[^"]+"/g, "")
      .replaceAll(/;r=\d+/g, ";r=0")
      .replaceAll(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, nameOf)
      .replaceAll(/\b1[789]\d{11}\b/g, (found) =>
        momentOf(Math.floor(Number(found) / 1000) - createdAt),
      )
      .replaceAll(/\b1[789]\d{8}\b/g, (found) => momentOf(Number(found) - createdAt))
  );
}

/** Headers whose values depend on ids or on the time. */
const unlike = new Set(["date", "etag", "content-length"]);

function shownOf({ status, headers, body }: Answer): string {
  const kept = [...headers].filter(([name]) => !unlike.has(name));
  return JSON.stringify({ status, headers: kept, body });
}

async function untilDelivered({ path, id }: Asked): Promise<void> {
  const { body } = await world.call("GET", `${path}/${id}/events`);
  const count = (body["items"] as unknown[]).length;
  await world.until("every event was delivered", async () => {
    const { body: told } = await world.call("GET", `${path}/${id}/deliveries`);
    return (told["items"] as unknown[]).length === count ? true : null;
  });
}

/** Reads everything that the merchant can get of a request. */
async function look(asked: Asked): Promise<string[]> {
  const { path, id, business } = asked;
  await untilDelivered(asked);
  const parts = ["", "/events", "/deliveries", "/release", "/proofs", "/signature"];
  const paths = [
    ...parts.map((part) => `${path}/${id}${part}`),
    `${path}?limit=1`,
    `${path}?limit=1&status=pending_approval`,
    ...["account", "charges?limit=1"].map((part) => `/api/v1/kyb/billing/${part}`),
    ...["status", "verify", "members"].map((part) => `/api/v1/kyb/${part}/${business}`),
  ];
  const seen: string[] = [];
  for (const each of paths) seen.push(`${each}\n${shownOf(await world.call("GET", each))}`);
  for (const { headers, body: sent } of receiver.received)
    if (sent.includes(id))
      seen.push(JSON.stringify({ ...headers, host: "", "content-length": "" }) + sent);
  return seen.map((each) => plain(each, asked));
}

type End = (asked: Asked) => Promise<unknown>;

const cancel = async ({ path, id }: Asked): Promise<Answer> =>
  world.call("POST", `${path}/${id}/cancel`, { body: {} });

const ends: Readonly<Record<string, End>> = {
  "it was cancelled": cancel,
  "the business was suspended": async ({ business }) => suspendBusiness(ctx, business, "test"),
  "its time was over": async () => world.advance(daySeconds + 1),
};

/** @returns what is seen between the votes and the end; the time is held, since a refusal shows seconds later */
async function playOpen(asked: Asked, votes: Votes): Promise<string[]> {
  using _ = world.holdTime();
  await cast(asked.id, votes);
  const open = await look(asked);
  open.push(plain(shownOf(await asked.again("first")), asked));
  if (asked.path === requestsPath) open.push(plain(shownOf(await asked.again("second")), asked));
  return open;
}

/** @returns what is seen after it has ended */
async function playEnd(asked: Asked, end: End): Promise<string[]> {
  await end(asked);
  await world.until("it has ended", async () => {
    const { body } = await world.call("GET", `${asked.path}/${asked.id}`);
    return body["status"] === "pending_approval" ? null : true;
  });
  const late = plain(shownOf(await cancel(asked)), asked);
  return [...(await look(asked)), late];
}

const turnouts: readonly Votes[] = [
  {},
  { approve: ["alice"] },
  { approve: ["erin"] },
  { approve: ["alice", "bob", "carol", "dave"] },
  { approve: ["erin", "dave", "carol", "bob"] },
];

for (const [kind, path] of [
  ["data", requestsPath],
  ["a signature", signaturesPath],
] as const) {
  const name = `where ${kind} is asked for, nothing tells whether nobody, one or all but one had voted`;
  /** Each business sees another turnout. @param later plays on after the votes */
  const playAll = async (
    later: (asked: Asked, votes: Votes) => Promise<string[]>,
  ): Promise<void> => {
    const businesses = await insertBusinesses(world, turnouts.length, everybody, "UNANIMOUS");
    const seen: string[][] = [];
    for (const [index, votes] of turnouts.entries())
      seen.push(await later(await ask(path, businesses[index] as Address), votes));
    const [first, ...others] = seen;
    assert.ok(first !== undefined && first.length > 14);
    for (const other of others) assert.deepEqual(other, first);
  };
  await test(`${name}, while it is open`, async () =>
    playAll(async (asked, votes) => {
      const open = await playOpen(asked, votes);
      await cancel(asked);
      return open;
    }));
  for (const [ending, end] of Object.entries(ends))
    await test(`${name}, after ${ending}`, async () =>
      playAll(async (asked, votes) => {
        await cast(asked.id, votes);
        return playEnd(asked, end);
      }));
}

await test("a refusal that is decided shows nowhere before it is announced, and then not who refused, or when", async () => {
  const votes: readonly Votes[] = [
    { reject: ["alice", "bob", "carol"] },
    { approve: ["bob", "alice"], reject: ["erin", "dave", "carol"] },
    { approve: ["erin"], reject: ["dave", "carol", "alice"] },
  ];
  for (const path of [requestsPath, signaturesPath]) {
    const [cancelled, ...refusing] = await insertBusinesses(world, votes.length + 1, everybody);
    const first = await ask(path, cancelled as Address);
    const untouched = await playOpen(first, {});
    await cancel(first);
    const seen = [];
    for (const [index, given] of votes.entries()) {
      const asked = await ask(path, refusing[index] as Address);
      assert.deepEqual(await playOpen(asked, given), untouched);
      seen.push(await playEnd(asked, async () => world.advance(31)));
    }
    for (const ended of seen) assert.deepEqual(ended, seen[0]);
  }
  const delays = await ctx.db.query<{ delay: string; isEarly: boolean }>({
    name: "",
    text: `select (refused_due_at - ballot.ended_at)::text as delay, r.ended_at < refused_due_at as "isEarly"
      from (select id, refused_due_at, ended_at from data_request
        union all select id, refused_due_at, ended_at from signature_request) r join ballot using (id)
      where ballot.status = 'refused'`,
    values: [],
  });
  assert.equal(delays.length, 2 * votes.length);
  for (const { delay, isEarly } of delays)
    assert.ok(Number(delay) >= 5 && Number(delay) <= 30 && !isEarly, delay);
});

await test("a release is the same whichever members approved, in whatever order, and whoever refused", async () => {
  const votes: readonly Votes[] = [
    { approve: ["alice", "bob", "carol"] },
    { approve: ["erin", "dave", "carol"] },
  ];
  const businesses = await insertBusinesses(world, votes.length + 1, everybody);
  const released = [];
  for (const [index, given] of votes.entries()) {
    const asked = await ask(requestsPath, businesses[index] as Address);
    await cast(asked.id, given);
    await world.waitFor(asked.id, "released");
    released.push(await look(asked));
  }
  const last = await ask(requestsPath, businesses[2] as Address);
  await cast(last.id, { reject: ["alice", "erin"] });
  await cast(last.id, { approve: ["dave", "bob", "carol"] });
  await world.waitFor(last.id, "released");
  released.push(await look(last));
  assert.ok(released[0]?.some((each) => each.includes('"threshold_met":true')));
  // The money spent before differs.
  const money = /"(spentChf|availableChf)":[\d.]+/g;
  const [first, ...others] = released.map((all) => all.map((each) => each.replaceAll(money, "")));
  for (const other of others) assert.deepEqual(other, first);
});

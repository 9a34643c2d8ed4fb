// Merchants ask and cancel, members approve and refuse, and time runs out, all at random on two processes, while the
// ledger is looked at again and again. The seed is fixed; what meets what is up to the machine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type DataWorld, openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import type { Answer } from "../kyb-world.ts";

const members = ["alice", "bob", "carol"];
const fields = [
  "BUSINESS_LEGAL_NAME",
  "BUSINESS_REGISTRATION_NUMBER",
  "BUSINESS_COMPANY_TYPE",
  "BUSINESS_DIRECTOR_COUNT",
  "BUSINESS_DIRECTOR_NAME",
];
const workers = 8;
const stepsEach = 45;
const daySeconds = 86_400;
/** What may be answered to those who come too late, ask too much or meet somebody else. */
const allowed = new Set([
  "200",
  "201",
  "402 insufficient_credit",
  "409 request_already_open",
  "409 request_not_open",
  "409 ballot_over",
  "409 ballot_changed",
  "409 already_voted",
  "422 signature_wrong",
  "429 rate_limited",
]);

/** Numbers from 0 to below `count`, always the same ones (Marsaglia's xorshift32). */
function randomOf(seed: number): (count: number) => number {
  let state = seed;
  return (count) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % count;
  };
}

type Random = ReturnType<typeof randomOf>;

await using world: DataWorld = await openDataWorld({ fundsRappen: 4000n });
await using second = await world.startProcess();
const { ctx } = world;
const businesses = await insertBusinesses(world, 10, members);
const asked: string[] = [];
const told = new Map<string, number>();

function note({ status, body }: Answer): void {
  const outcome = `${status} ${body.error?.reason ?? ""}`.trim();
  assert.ok(allowed.has(outcome), `${outcome} ${JSON.stringify(body)}`);
  told.set(outcome, (told.get(outcome) ?? 0) + 1);
}

const some = (random: Random, of: readonly string[]): string[] => of.filter(() => random(2) === 0);

async function create(random: Random, baseUrl: string): Promise<void> {
  const [first = "", ...others] = fields.toSorted(() => random(3) - 1);
  const required = [first, ...others.slice(0, random(2))];
  const optionalFields = some(random, fields).filter((name) => !required.includes(name));
  const businessWalletAddress = businesses[random(businesses.length)];
  const answer = await world.ask(
    { fields: required, optionalFields, businessWalletAddress },
    { baseUrl },
  );
  note(answer);
  if (answer.status === 201) asked.push(String(answer.body["requestId"]));
}

async function cancel(random: Random, baseUrl: string): Promise<void> {
  // One of the last: those before have ended.
  const id = asked.at(-1 - random(8));
  if (id === undefined) return;
  note(await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {}, baseUrl }));
}

async function vote(random: Random, baseUrl: string): Promise<void> {
  const name = members[random(members.length)] ?? "";
  const items = await world.inboxOf(name);
  const item = items[random(Math.max(items.length, 1))];
  if (item === undefined) return;
  const offered = (item["optional"] as (string | { name: string })[]).map((each) =>
    typeof each === "string" ? each : each.name,
  );
  const fixed = item["fixedOptional"] as string[] | null;
  const optional = fixed ?? some(random, offered);
  const kind = random(2) === 0 ? "reject" : "approve";
  note(await world.voteAs(name, item.id, { item, vote: kind, optional, baseUrl }));
}

async function work(number: number): Promise<void> {
  const random = randomOf(7919 * (number + 1));
  for (let step = 0; step < stepsEach; step += 1) {
    const baseUrl = random(2) === 0 ? world.baseUrl : second.url;
    const kind = random(20);
    if (kind < 7) await create(random, baseUrl);
    else if (kind < 9) await cancel(random, baseUrl);
    else if (kind < 18) await vote(random, baseUrl);
    else if (number === 0) await world.advance(random(4) === 0 ? daySeconds + 1 : 20);
  }
}

async function watch(over: AbortSignal): Promise<number> {
  let looks = 0;
  while (!over.aborted) {
    await checkMoney(ctx);
    looks += 1;
    await delay(50);
  }
  return looks;
}

await test("whatever happens at the same time, the ledger is right at every moment, and nothing is held at the end", async () => {
  const over = new AbortController();
  const watching = watch(over.signal);
  try {
    await Promise.all(Array.from({ length: workers }, async (_, number) => work(number)));
  } finally {
    over.abort();
  }
  assert.ok((await watching) > 10);
  for (const outcome of ["201", "402 insufficient_credit", "409 request_already_open"])
    assert.ok(told.has(outcome), `${outcome} in ${JSON.stringify([...told])}`);

  await world.advance(daySeconds + 31);
  await world.until("every request has ended", async () => {
    const { body } = await world.call("GET", `${requestsPath}?status=pending_approval`);
    return (body["items"] as unknown[]).length === 0 ? true : null;
  });
  await checkMoney(ctx);
  const { body } = await world.call("GET", "/api/v1/kyb/billing/account");
  const ends = await ctx.db.query<{ status: string }>({
    name: "",
    text: "select distinct status from data_request order by status",
    values: [],
  });
  // Which of them come about is up to the machine too.
  const possible = new Set(["cancelled", "refused", "released"]);
  assert.ok(
    ends.length > 1 && ends.every(({ status }) => possible.has(status)),
    JSON.stringify(ends),
  );
  assert.equal(body["frozenChf"], 0);
  const charges = await ctx.db.query<{ sum: string }>({
    name: "",
    text: "select sum(amount_rappen)::text as sum from kyb_charge",
    values: [],
  });
  assert.equal(Math.round(Number(body["spentChf"]) * 100), Number(charges[0]?.sum));
});

// Votes that meet other votes, cancellations, ends of time, suspensions and changes of members, on two processes: every
// request has one end, one event of it, and what follows from it once.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { suspendBusiness } from "../../service/src/kyb/business/standing.ts";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import type { Answer, VoteOptions } from "../kyb-world.ts";

const members = ["alice", "bob", "carol"];
const rounds = 12;
const oneFranc = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };

await using world = await openDataWorld();
await using second = await world.startProcess();
const { ctx, business } = world;
const places = [world.baseUrl, second.url];
const placeOf = (index: number): string => places[index % places.length] ?? "";

async function rows<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
  return ctx.db.query<Row>({ name: "", text, values });
}

async function askAll(businesses: readonly Address[]): Promise<string[]> {
  const answers = await Promise.all(
    businesses.map(async (businessWalletAddress) =>
      world.ask({ ...oneFranc, businessWalletAddress }),
    ),
  );
  return answers.map(({ status, body }) => {
    assert.equal(status, 201, JSON.stringify(body));
    return String(body["requestId"]);
  });
}

async function askSignatures(count: number, label: string): Promise<string[]> {
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, index) =>
      world.call("POST", signaturesPath, {
        headers: { "idempotency-key": `${label.replace(" ", "-")}-${index}` },
        body: {
          businessWalletAddress: business.address,
          ...someText,
          message: `${label} ${index}`,
        },
      }),
    ),
  );
  return answers.map(({ status, body }) => {
    assert.equal(status, 201, JSON.stringify(body));
    return String(body["requestId"]);
  });
}

interface Cast extends VoteOptions {
  readonly name: string;
}

/** Casts all of these votes on one ballot at one instant; the inboxes are read before. */
async function castAtOnce(id: string, casts: readonly Cast[], also?: () => Promise<unknown>) {
  const items = await Promise.all(casts.map(async ({ name }) => world.findVote(name, id)));
  const voting = casts.map(async ({ name, ...options }, index) => {
    const item = items[index];
    if (item === undefined) throw new Error(`nothing lies in the inbox of ${name}`);
    return world.voteAs(name, id, { item, ...options });
  });
  const [answers] = await Promise.all([Promise.all(voting), also?.()]);
  return answers;
}

const reasonOf = ({ status, body }: Answer): string =>
  `${status} ${body.error?.reason ?? ""}`.trim();

/** Checks for one transition: two events in order, the second as the record says. @returns the status */
async function checkEnd(path: string, id: string): Promise<string> {
  const record = await world.until(`${id} has ended`, async () => {
    const { body } = await world.call("GET", `${path}/${id}`);
    return body["status"] === "pending_approval" ? null : body;
  });
  const { body } = await world.call("GET", `${path}/${id}/events`);
  const told = (body["items"] as { body: string }[]).map(
    (each) => JSON.parse(each.body) as { event: string; seq: number },
  );
  assert.deepEqual(
    told.map(({ event, seq }) => [event.split(".").at(-1), seq]),
    [
      ["pending_approval", 1],
      [record["status"], 2],
    ],
  );
  return String(record["status"]);
}

/** Checks that every approved ballot has exactly the approvals that it needs, each by a voter of its epoch. */
async function checkBallots(): Promise<void> {
  const wrong = await rows(
    `select b.id from ballot b where b.status = 'approved' and b.needed <> (
       select count(*) from ballot_vote v
       where v.ballot_id = b.id and v.epoch = b.epoch and v.approval is not null and v.member = any(b.voters))`,
  );
  assert.deepEqual(wrong, []);
}

await test("two approvals at the same instant on two processes release and charge once", async () => {
  const ids = await askAll(await insertBusinesses(world, rounds, members));
  const answers = await Promise.all(
    ids.map(async (id) =>
      castAtOnce(id, [
        { name: "alice", baseUrl: placeOf(0) },
        { name: "bob", baseUrl: placeOf(1) },
      ]),
    ),
  );
  for (const pair of answers)
    assert.deepEqual(pair.map(({ body }) => String(body["status"])).toSorted(), [
      "approved",
      "open",
    ]);
  for (const id of ids) assert.equal(await checkEnd(requestsPath, id), "released");
  const charges = await rows("select 1 from kyb_charge where request_id = any($1)", [ids]);
  assert.equal(charges.length, rounds);
  await checkBallots();
  await checkMoney(ctx);
});

await test("three approvals where two are enough: the third finds it decided, and it is released once", async () => {
  const ids = await askAll(await insertBusinesses(world, rounds, members));
  for (const id of ids) {
    const casts = members.map((name, index) => ({ name, baseUrl: placeOf(index) }));
    const outcomes = (await castAtOnce(id, casts)).map((answer) =>
      answer.status === 200 ? String(answer.body["status"]) : reasonOf(answer),
    );
    assert.deepEqual(outcomes.toSorted(), ["409 ballot_over", "approved", "open"]);
    assert.equal(await checkEnd(requestsPath, id), "released");
  }
  await checkBallots();
  await checkMoney(ctx);
});

await test("one vote that is sent five times to two processes counts once", async () => {
  const [id = ""] = await askAll(await insertBusinesses(world, 1, members));
  const cast = { name: "alice", optional: [] };
  const casts = Array.from({ length: 5 }, (_, index) => ({ ...cast, baseUrl: placeOf(index) }));
  const answers = await castAtOnce(id, casts);
  assert.ok(answers.every(({ status, body }) => status === 200 && body["status"] === "open"));
  const votes = await rows("select 1 from ballot_vote where ballot_id = $1", [id]);
  assert.equal(votes.length, 1);
  await world.voteAs("bob", id);
  assert.equal(await checkEnd(requestsPath, id), "released");
});

await test("a signature that all approve at the same instant is recorded once and told once", async () => {
  const ids = await askSignatures(5, "At once");
  await Promise.all(
    ids.map(async (id) =>
      castAtOnce(
        id,
        members.map((name, index) => ({ name, baseUrl: placeOf(index) })),
      ),
    ),
  );
  for (const id of ids) {
    assert.equal(await checkEnd(signaturesPath, id), "signed");
    const recordings = await rows<{ status: string }>(
      "select status from chain_transaction where kind = 'business.record' and subject_id like $1 || '.%'",
      [id],
    );
    assert.equal(recordings.length, 1);
  }
  await checkBallots();
});

await test("the deciding member approves and refuses at the same instant: one of the two counts", async () => {
  const ids = await askAll(await insertBusinesses(world, rounds, members));
  await Promise.all(
    ids.map(async (id) => {
      await world.voteAs("alice", id);
      await world.voteAs("bob", id, { vote: "reject" });
    }),
  );
  const decided = await Promise.all(
    ids.map(async (id, index) =>
      castAtOnce(id, [
        { name: "carol", vote: "approve", baseUrl: placeOf(index) },
        { name: "carol", vote: "reject", baseUrl: placeOf(index + 1) },
      ]),
    ),
  );
  const expected = decided.map((pair, index) => {
    assert.deepEqual(
      pair.map((answer) => reasonOf(answer)).toSorted(),
      ["200", "409 already_voted"],
      String(index),
    );
    return pair[0]?.status === 200 ? "released" : "refused";
  });
  await world.advance(31);
  const ends = await Promise.all(ids.map(async (id) => checkEnd(requestsPath, id)));
  assert.deepEqual(ends, expected);
  await checkBallots();
  await checkMoney(ctx);
});

await test("approvals and refusals of several members at the same instant come to one end", async () => {
  const four = [...members, "dave"];
  const ids = await askAll(await insertBusinesses(world, rounds, four));
  await Promise.all(
    ids.map(async (id) =>
      castAtOnce(
        id,
        four.map((name, index) => ({
          name,
          vote: index % 2 === 0 ? "approve" : "reject",
          baseUrl: placeOf(index),
        })),
      ),
    ),
  );
  await world.advance(31);
  // Three of four are needed: two refusals end it whatever came before.
  for (const id of ids) assert.equal(await checkEnd(requestsPath, id), "refused");
  await checkMoney(ctx);
});

await test("a request whose business is suspended while the deciding vote comes is released and paid, or fails", async () => {
  const businesses = await insertBusinesses(world, rounds, members);
  const ids = await askAll(businesses);
  await Promise.all(ids.map(async (id) => world.voteAs("alice", id)));
  await Promise.all(
    ids.map(async (id, index) =>
      castAtOnce(id, [{ name: "bob", baseUrl: placeOf(index) }], async () =>
        suspendBusiness(ctx, businesses[index] ?? "", "test"),
      ),
    ),
  );
  for (const id of ids) {
    const status = await checkEnd(requestsPath, id);
    assert.ok(["released", "failed"].includes(status), status);
    const { body } = await world.call("GET", `${requestsPath}/${id}`);
    assert.equal(body["reason"], status === "failed" ? "business_not_verified" : undefined);
  }
  await checkMoney(ctx);
});

await test("a request whose time ends while the deciding vote comes is released, or ends without a release", async () => {
  const ids = await askAll(await insertBusinesses(world, rounds, members));
  await Promise.all(ids.map(async (id) => world.voteAs("alice", id)));
  const items = await Promise.all(ids.map(async (id) => world.findVote("bob", id)));
  // The votes are on their way before the time moves, because it would end the sessions too.
  const voting = items.map(async (item, index) =>
    world.voteAs("bob", item.id, { item, baseUrl: placeOf(index) }),
  );
  await world.advance(86_401);
  const answers = await Promise.all(voting);
  for (const [index, id] of ids.entries()) {
    const answer = answers[index];
    assert.ok(answer !== undefined);
    const status = await checkEnd(requestsPath, id);
    assert.equal(status, answer.status === 200 ? "released" : "refused", reasonOf(answer));
  }
  await checkBallots();
  await checkMoney(ctx);
});

await test("a signature that is cancelled while the deciding vote comes is signed or cancelled, and told once", async () => {
  const ids = await askSignatures(5, "Cancelled");
  await Promise.all(ids.map(async (id) => world.voteAs("alice", id)));
  await Promise.all(
    ids.map(async (id, index) =>
      castAtOnce(id, [{ name: "bob", baseUrl: placeOf(index) }], async () =>
        world.call("POST", `${signaturesPath}/${id}/cancel`, {
          body: {},
          baseUrl: placeOf(index + 1),
        }),
      ),
    ),
  );
  for (const id of ids)
    assert.ok(["signed", "cancelled"].includes(await checkEnd(signaturesPath, id)));
});

await test("members change while votes come: no vote of a member who left counts, and all is decided anew", async () => {
  const ids = await askSignatures(4, "Changing");
  const [dataId = ""] = await askAll([business.address]);
  const all = [...ids, dataId];
  await Promise.all(all.map(async (id) => world.voteAs("alice", id)));
  const items = await Promise.all(all.map(async (id) => world.findVote("bob", id)));
  await world.govern(
    "bob",
    { operation: "changeCharter", members: world.rosterOf(["bob", "carol", "dave"]) },
    { voters: ["bob", "carol"] },
  );
  // One after the other, while the chain takes the change and the service follows it.
  for (const [index, item] of items.entries())
    await world.voteAs("bob", item.id, { item, baseUrl: placeOf(index) });
  await world.until("the change is known", async () =>
    (await world.businessOf("bob", business.address))["epoch"] === 1 ? true : null,
  );
  const { address } = world.person("alice");
  for (const id of all) {
    const path = id === dataId ? requestsPath : signaturesPath;
    await world.until(`${id} is decided`, async () => {
      const { body } = await world.call("GET", `${path}/${id}`);
      if (body["status"] !== "pending_approval") return true;
      for (const name of ["bob", "carol", "dave"]) {
        const inbox = await world.inboxOf(name);
        const item = inbox.find((each) => each.id === id);
        if (item !== undefined) await world.voteAs(name, id, { item });
      }
      return null;
    });
    const { body } = await world.call("GET", `${path}/${id}`);
    const status = await checkEnd(path, id);
    assert.equal(status, id === dataId ? "released" : "signed", String(body["reason"]));
  }
  const counted = await rows(
    `select b.id from ballot b join ballot_vote v on v.ballot_id = b.id and v.epoch = b.epoch
     where b.epoch = 1 and v.member = $1`,
    [address],
  );
  assert.deepEqual(counted, []);
  await checkBallots();
  await checkMoney(ctx);
});

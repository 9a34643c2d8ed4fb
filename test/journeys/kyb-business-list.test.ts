// The businesses of one identity, as its wallet reads them.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type Address, bytesOfHex, encodeCharter } from "@svc/protocol";
import { insertMembers } from "../../service/src/kyb/business/founding-store.ts";
import { insertProposal } from "../../service/src/kyb/business/proposal-store.ts";
import { sealMemberName } from "../../service/src/kyb/business/members.ts";
import { listBusinesses } from "../../service/src/kyb/business/standing.ts";
import { showBusinesses } from "../../service/src/kyb/business/shown-business.ts";
import { type Queryable, type Statement, sql } from "../../service/src/platform/database/db.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld({ members: ["mira"] });
});
after(async () => world[Symbol.asyncDispose]());

const addressOf = (at: number): Address => `0x${at.toString(16).padStart(40, "0")}`;

/** Adds businesses of which the person is a member, or from number `invited` on only invited. */
async function joinMany(name: string, given: { count: number; invited: number }): Promise<void> {
  const { db, seal } = world.ctx;
  for (let at = 1; at <= given.count; at += 1) {
    const isInvited = at >= given.invited;
    const address = addressOf(at);
    await db.query(sql`
      insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      select ${address}, environment, ${`Muster ${at}`}, ${isInvited ? "inviting" : "active"}, creator,
        ${`many ${at}`}, ${world.ctx.clock.now() + 3600}, salt, charter, ${1000 - Math.floor(at / 7)}
      from business where address = ${world.business.address}`);
    const id = randomUUID();
    const member = {
      id,
      member: world.person(name).address,
      nameSealed: sealMemberName({ seal }, id, `${name} in ${at}`),
      isVoting: true,
      isCreator: false,
      signature: isInvited ? null : (`0x${"00".repeat(65)}` as const),
    };
    await insertMembers(db, address, { members: [member], now: 0 });
  }
}

async function readPage(name: string, cursor: string | null) {
  const query = cursor === null ? "" : `?cursor=${encodeURIComponent(cursor)}`;
  const { status, body } = await world.walletCall(name, "GET", `/w/businesses${query}`);
  assert.equal(status, 200);
  return body as unknown as {
    items: { address: Address; name: string; status: string }[];
    nextCursor?: string;
  };
}

test("a member of 230 businesses reads all of them, 100 on a page; those it is invited to come last", async () => {
  await joinMany("mira", { count: 229, invited: 200 });
  const pages = [await readPage("mira", null)];
  for (let last = pages.at(-1); last?.nextCursor !== undefined; last = pages.at(-1))
    pages.push(await readPage("mira", last.nextCursor));
  assert.deepEqual(
    pages.map(({ items }) => items.length),
    [100, 100, 30],
  );
  const items = pages.flatMap((page) => page.items);
  assert.equal(new Set(items.map(({ address }) => address)).size, 230);
  assert.ok(items.slice(0, 200).every(({ status }) => status === "active"));
  assert.ok(items.slice(200).every(({ status }) => status === "inviting"));
});

test("an operator reads all businesses by address, 100 on a page, or those of one environment", async () => {
  const pages = [await listBusinesses(world.ctx)];
  for (let last = pages.at(-1); last?.nextCursor !== undefined; last = pages.at(-1))
    pages.push(await listBusinesses(world.ctx, { cursor: last.nextCursor }));
  assert.deepEqual(
    pages.map(({ items }) => items.length),
    [100, 100, 30],
  );
  const addresses = pages.flatMap(({ items }) => items.map(({ address }) => address));
  assert.deepEqual(addresses, [...new Set(addresses)].toSorted());
  const sandbox = await world.found({ members: ["nina"], environment: "sandbox" });
  const { items } = await listBusinesses(world.ctx, { environment: "sandbox" });
  assert.deepEqual(
    items.map(({ address }) => address),
    [sandbox.address],
  );
});

test("a page of businesses ends where it is full, whatever rosters and names somebody was invited into", async () => {
  const { ctx } = world;
  const name = "會".repeat(100);
  const invited = world.person("lara").address;
  const members = [invited, ...Array.from({ length: 49 }, (_, at) => addressOf(100_000 + at))];
  const charter = bytesOfHex(
    encodeCharter({
      rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "MAJORITY" },
      members: members.map((address, at) => ({ address, isVoting: at < 2 })),
    }),
  );
  const large = Array.from({ length: 100 }, (_, at) => addressOf(20_000 + at));
  for (const address of large) {
    await ctx.db.query(sql`
      insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      select ${address}, environment, ${name}, 'inviting', creator, ${`large ${address}`}, ${ctx.clock.now() + 3600}, salt,
        ${Buffer.from(charter ?? [])}, 2000
      from business where address = ${world.business.address}`);
    const rows = members.map((member) => {
      const id = randomUUID();
      const nameSealed = sealMemberName(ctx, id, name);
      return { id, member, nameSealed, isVoting: true, isCreator: false, signature: null };
    });
    await insertMembers(ctx.db, address, { members: rows, now: 0 });
  }
  const listed: string[] = [];
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await showBusinesses(ctx, invited, cursor);
    assert.ok(Buffer.byteLength(JSON.stringify(items)) < 1.5 * 1024 * 1024);
    listed.push(...items.map(({ address }) => address));
    cursor = nextCursor;
  } while (cursor !== undefined);
  assert.deepEqual(listed, large);
});

test("400: a cursor of the list of businesses that is not ours is refused", async () => {
  for (const cursor of ["x", "2.0.0x", `0.0.${addressOf(1)} `]) {
    const path = `/w/businesses?cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await world.walletCall("mira", "GET", path);
    assert.deepEqual([status, body.error?.reason], [400, "invalid_request"], cursor);
  }
});

test("a page of businesses costs six statements, and each is shown with its own members and newest proposals", async () => {
  const { ctx } = world;
  const member = world.person("mira").address;
  const [first, second] = (await readPage("mira", null)).items;
  assert.ok(first && second);
  for (let at = 0; at < 25; at += 1)
    for (const { address: business } of [first, second])
      await insertProposal(ctx.db, {
        id: `${String(at).padStart(2, "0")} of ${business}`,
        business,
        operation: "withdraw",
        arguments: `0x${"00".repeat(32)}`,
        namesSealed: null,
        member: null,
        proposer: member,
        nonce: 0,
        createdAt: 0,
      });
  const statements: string[] = [];
  const db: Queryable = {
    query: async <Row extends object>(statement: Statement) => {
      statements.push(statement.text);
      return ctx.db.query<Row>(statement);
    },
  };
  const { items } = await showBusinesses({ ...ctx, db }, member, undefined);
  assert.equal(statements.length, 6);
  for (const { address } of [first, second]) {
    const shown = items.find((each) => each.address === address);
    const proposals = shown?.["proposals"] as { id: string }[];
    assert.deepEqual(
      proposals.map(({ id }) => id),
      Array.from({ length: 20 }, (_, at) => `${String(24 - at).padStart(2, "0")} of ${address}`),
    );
    const members = shown?.["members"] as { name: string }[];
    assert.deepEqual(
      members.map(({ name }) => name),
      [`mira in ${Number(address)}`],
    );
  }
});

test("a founding that is forgotten while a page is read is left out of it", async () => {
  const { ctx } = world;
  const member = world.person("mira").address;
  const { items } = await showBusinesses(ctx, member, undefined);
  const forgotten = items.findLast(({ address }) => address !== world.business.address);
  assert.ok(forgotten);
  let isListed = false;
  const db: Queryable = {
    async query<Row extends object>(statement: Statement) {
      const rows = await ctx.db.query<Row>(statement);
      if (!isListed) {
        await ctx.db.query(sql`delete from business_member where business = ${forgotten.address}`);
        await ctx.db.query(sql`delete from business where address = ${forgotten.address}`);
      }
      isListed = true;
      return rows;
    },
  };
  const { items: left } = await showBusinesses({ ...ctx, db }, member, undefined);
  assert.deepEqual(
    left.map(({ address }) => address),
    items.map(({ address }) => address).filter((address) => address !== forgotten.address),
  );
});

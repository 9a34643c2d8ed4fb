// Answers that are large or take long: what one caller can make the service hold, and what that costs the others.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, afterEach, before, test } from "node:test";
import { createApiKey, createDomain } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { ulid } from "../../service/src/platform/ids.ts";
import { untilBlocked } from "../lock-waits.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

const path = "/api/v1/kyb/events";
/** More than the buffers of a connection hold while nobody reads, which is 4 MiB on Linux. */
const eventBytes = 6 * 1024 * 1024;
const atOnce = 4;
let world: World;
before(async () => {
  world = await openWorld({ TRUSTED_PROXIES: "127.0.0.0/8,::1", LIMIT_LOOPBACK: "true" });
});
after(async () => world[Symbol.asyncDispose]());
const stalled: Socket[] = [];
afterEach(() => {
  for (const socket of stalled.splice(0)) socket.destroy();
});

/** Adds one large event to a client domain. @returns a new API key of the domain */
async function keyWithEvent(clientDomainId: string): Promise<string> {
  const { ctx } = world;
  const { key } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
  const id = ulid(ctx.clock, ctx.random);
  await ctx.db.query(sql`
    insert into webhook_event
      (id, stream_id, sequence, channel, kind, client_domain_id, body, is_personal, created_at, purge_at)
    values (${id}, ${id}, 1, 'kyb', 'kyb.endpoint.test', ${clientDomainId}, repeat('A', ${eventBytes}), false, 0, ${ctx.clock.now() + 3600})`);
  return key;
}

async function read(key: string): Promise<number> {
  const answer = await fetch(`${world.baseUrl}${path}`, { headers: { authorization: key } });
  await answer.arrayBuffer();
  return answer.status;
}

/** Sends a request and reads only the beginning of the answer, so that the rest stays under way. */
async function askAndStall(key: string): Promise<void> {
  const { hostname, port } = new URL(world.baseUrl);
  const socket = connect(Number(port), hostname);
  stalled.push(socket);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${key}\r\n\r\n`);
  await once(socket, "data");
  socket.pause();
}

test("a client domain has four large answers under way at once: more wait, and others go on meanwhile", async () => {
  const { ctx, organizationId, clientDomainId } = world;
  const domain = { organizationId, domain: "shop.example", environment: "sandbox" } as const;
  const key = await keyWithEvent(clientDomainId);
  const other = await keyWithEvent((await createDomain(ctx, domain, "test")).id);
  await Promise.all(Array.from({ length: atOnce }, async () => askAndStall(key)));
  const fifth = askAndStall(key);
  // If the fifth had begun, its beginning would have arrived before this answer ends.
  assert.equal(await read(other), 200);
  assert.equal(await Promise.race([fifth, Promise.resolve("waits")]), "waits");
  stalled[0]?.destroy();
  await fifth;
});

test("a caller that leaves while waiting for its turn takes nobody else's", async () => {
  const { ctx, organizationId, clientDomainId } = world;
  const domain = { organizationId, domain: "other.example", environment: "sandbox" } as const;
  const key = await keyWithEvent(clientDomainId);
  const other = await keyWithEvent((await createDomain(ctx, domain, "test")).id);
  await Promise.all(Array.from({ length: atOnce }, async () => askAndStall(key)));
  const { hostname, port } = new URL(world.baseUrl);
  const gone = connect(Number(port), hostname);
  gone.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${key}\r\n\r\n`);
  assert.equal(await read(other), 200, "by then it waits");
  gone.destroy();
  const waiting = read(key);
  stalled[0]?.destroy();
  assert.equal(await waiting, 200);
});

/** Each with a table that it reads. (The list of businesses is missing because it needs a chain.) */
const costlyLists = [
  ["/w/inbox", "business_member"],
  ["/w/logins", "token_family"],
] as const;

test("of one network four costly lists are made at once, and others go on meanwhile", async () => {
  for (const [list, table] of costlyLists) await readWhileHeld(list, table);
});

async function readWhileHeld(list: string, table: string): Promise<void> {
  const { ctx, baseUrl } = world;
  const session = await openWalletSession(baseUrl, newIdentity());
  const readList = async (address: string): Promise<number> => {
    const headers = { ...session, "x-forwarded-for": address };
    return (await fetch(`${baseUrl}${list}`, { headers })).status;
  };
  let other = 0;
  const reads = await ctx.db.transaction(async (tx) => {
    await tx.query({
      name: "",
      text: `lock table ${table} in access exclusive mode`,
      values: [],
    });
    // Without a limit these would take every connection to the database.
    const begun = Array.from({ length: 20 }, async () => readList("192.0.2.1"));
    await untilBlocked(ctx.db, tx, atOnce);
    other = (await fetch(`${baseUrl}/w/orders`, { headers: session })).status;
    return begun;
  });
  assert.equal(other, 200);
  assert.deepEqual(new Set(await Promise.all(reads)), new Set([200]));
}

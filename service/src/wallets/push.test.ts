import assert from "node:assert/strict";
import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  type ECDH,
  hkdfSync,
  randomBytes,
  randomUUID,
} from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { jwtVerify } from "jose";
import { type Address, addressOfPrivateKey, sessionDigest, signDigest } from "@svc/protocol";
import { openTestContext } from "../../../test/test-context.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { createHttp } from "../platform/http/http.ts";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { until } from "../../../test/patience.ts";
import { markExamined, takeDueHints } from "./push-store.ts";
import { deletePushOf, walletRoutes } from "./index.ts";
import { purgeDevices, purgeHints, sendHints } from "./push.ts";

await using ctx = await openTestContext();
await using http = createHttp(ctx);
await walletRoutes(ctx, http, {
  verifySession: async ({ address, digest, signature }) =>
    recoverAddress(digest, signature) === address,
  listLogins: async () => ({ items: [] }),
  endLogin: async () => false,
  addRoutes: () => undefined,
});

const personKey = randomBytes(32);
const person = addressOfPrivateKey(personKey);
const business: Address = `0x${"b5".repeat(20)}`;
await ctx.db.query(sql`
  insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
  values (${business}, 'live', 'Secret Plans AG', 'active', ${person}, 'i', 0, ${randomBytes(32)}, ${randomBytes(24)}, 0)`);
await addMember(business);

async function ask(method: "GET" | "POST" | "DELETE", url: string, body?: unknown, token?: string) {
  const answer = await http.inject({
    method,
    url,
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
  });
  const said = answer.body === "" ? {} : answer.json<Record<string, unknown>>();
  return { status: answer.statusCode, body: said };
}

async function openSession(key = personKey): Promise<string> {
  const { body } = await ask("POST", "/w/session/challenge", {});
  const { challenge, deadline, origin } = body as {
    challenge: string;
    deadline: number;
    origin: string;
  };
  const signature = signDigest(sessionDigest({ origin, challenge, deadline }), key);
  const opened = await ask("POST", "/w/session", {
    svcID: addressOfPrivateKey(key),
    challenge,
    deadline,
    signature,
  });
  return String(opened.body["token"]);
}

const token = await openSession();
const subscribe = async (body: unknown): Promise<number> =>
  (await ask("POST", "/w/push", body, token)).status;

async function addMember(of: string): Promise<void> {
  await ctx.db.query(sql`
    insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at, has_voted)
    values (${randomUUID()}, ${of}, ${person}, '', true, false, 0, true)`);
}

/** Puts a question to the person's business. */
async function openVote(id: string, seconds = 600): Promise<void> {
  const endsAt = ctx.clock.now() + seconds;
  await ctx.db.query(sql`
    insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
    values (${id}, 'governance', ${business}, 3, 0, ${[person]}, 1, ${endsAt + 3600}, ${endsAt}, 'open', 0)`);
}

interface Hint {
  path: string;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

/** The answers for some devices. */
const statuses: Record<string, number> = {
  "/gone": 410,
  "/unknown": 404,
  "/refused": 403,
  "/busy": 503,
  "/page": 404,
};
/** Longer than what is read of an answer. */
const page = "x".repeat(8_000);

/** The push service. */
async function openReceiver() {
  const hints: Hint[] = [];
  /** Requests that are not answered until the other side gives up. */
  const hanging = new Set<ServerResponse>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    hints.push({ path: request.url ?? "", headers: request.headers, body });
    if (request.url === "/hangs") {
      hanging.add(response);
      response.once("close", () => hanging.delete(response));
      return;
    }
    response.writeHead(statuses[request.url ?? ""] ?? 201).end(request.url === "/page" ? page : "");
  };
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    hints,
    hanging,
    url: (path: string) => `http://localhost:${port}${path}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

await using receiver = await openReceiver();

interface Device {
  readonly ecdh: ECDH;
  readonly auth: Buffer;
  readonly subscription: { endpoint: string; keys: { p256dh: string; auth: string } };
}

function newDevice(path: string): Device {
  const ecdh = createECDH("prime256v1");
  ecdh.generateKeys();
  const auth = randomBytes(16);
  const keys = { p256dh: ecdh.getPublicKey("base64url"), auth: auth.toString("base64url") };
  return { ecdh, auth, subscription: { endpoint: receiver.url(path), keys } };
}

/** RFC 8291 section 4 and RFC 8188, from the device's side. */
function decrypt({ ecdh, auth }: Device, body: Buffer): string {
  const salt = body.subarray(0, 16);
  const keyLength = body.readUInt8(20);
  const sender = body.subarray(21, 21 + keyLength);
  const secret = ecdh.computeSecret(sender);
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), ecdh.getPublicKey(), sender]);
  const ikm = Buffer.from(hkdfSync("sha256", secret, auth, info, 32));
  const key = hkdfSync("sha256", ikm, salt, "Content-Encoding: aes128gcm\0", 16);
  const nonce = hkdfSync("sha256", ikm, salt, "Content-Encoding: nonce\0", 12);
  const sealed = body.subarray(21 + keyLength);
  const decipher = createDecipheriv("aes-128-gcm", Buffer.from(key), Buffer.from(nonce));
  decipher.setAuthTag(sealed.subarray(-16));
  const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
  return padded.subarray(0, padded.lastIndexOf(2)).toString();
}

/** Everything in a hint by which a push service could tell it from another. */
function seenOf(hint: Hint | undefined): unknown {
  const { authorization, "content-length": length, ...headers } = hint?.headers ?? {};
  assert.match(authorization ?? "", /^vapid t=/);
  return { ...headers, length, bytes: hint?.body.length };
}

await test("a device is told once for each vote that something waits, and nothing of what", async () => {
  const device = newDevice("/device");
  // Its latest keys count.
  for (const { subscription } of [newDevice("/device"), device])
    assert.equal(await subscribe(subscription), 204);
  await openVote("01VOTE");
  await Promise.all([sendHints(ctx), sendHints(ctx)]);
  await sendHints(ctx);
  assert.equal(receiver.hints.length, 1);
  const [told] = receiver.hints.splice(0);
  const headers: Hint["headers"] = told?.headers ?? {};
  assert.equal(decrypt(device, told?.body ?? Buffer.alloc(0)), `{"type":"inbox"}`);
  assert.deepEqual([headers["content-encoding"], headers["topic"]], ["aes128gcm", "inbox"]);
  await openVote("02VOTE", 3 * 86_400);
  await sendHints(ctx);
  const [other, ...more] = receiver.hints.splice(0);
  assert.deepEqual(more, []);
  assert.deepEqual(seenOf(other), seenOf(told));
});

await test("a hint proves by the published key whom it comes from", async () => {
  const { body } = await ask("GET", "/w/push/key");
  const point = Buffer.from(String(body["key"]), "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) =>
    part.toString("base64url"),
  );
  const jwk = { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" };
  await openVote("03VOTE");
  await sendHints(ctx);
  const [hint] = receiver.hints.splice(0);
  const [, jwt = "", key] =
    /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(hint?.headers.authorization ?? "") ?? [];
  assert.equal(key, body["key"]);
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const audience = new URL(receiver.url("/")).origin;
  const { payload } = await jwtVerify(jwt, publicKey, { audience, algorithms: ["ES256"] });
  assert.match(String(payload.sub), /^(?:mailto|https):/);
});

await test("a device that its push service forgot is forgotten, and others are told on", async () => {
  const devices = Object.keys(statuses).map((path) => newDevice(path).subscription);
  for (const device of devices) assert.equal(await subscribe(device), 204);
  ctx.metrics.pushHints.reset();
  const lines: string[] = [];
  const info = (...line: unknown[]): void => void lines.push(JSON.stringify(line[0]));
  for (const id of ["04VOTE", "05VOTE"]) {
    await openVote(id);
    await sendHints({ ...ctx, log: { ...ctx.log, info } });
  }
  const { host } = new URL(receiver.url("/"));
  const refusals = [403, 403, 503, 503].map((status) => JSON.stringify({ host, status }));
  assert.deepEqual(lines.toSorted(), refusals, "the log tells the host, not the device");
  const paths = receiver.hints.splice(0).map(({ path }) => path);
  const twice = ["/busy", "/device", "/refused"].flatMap((path) => [path, path]);
  assert.deepEqual(paths.toSorted(), [...twice, "/gone", "/page", "/unknown"].toSorted());
  const { values } = await ctx.metrics.pushHints.get();
  const counted = Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
  assert.deepEqual(counted, { taken: 2, gone: 3, refused: 4 });
  for (const { endpoint } of devices) await ask("DELETE", "/w/push", { endpoint }, token);
});

await test("a device that one of its two identities has left still gets the hints of the other", async () => {
  const { subscription } = newDevice("/shared");
  const { endpoint } = subscription;
  const another = await openSession(randomBytes(32));
  await subscribe(subscription);
  assert.equal((await ask("POST", "/w/push", subscription, another)).status, 204);
  assert.equal((await ask("DELETE", "/w/push", { endpoint }, another)).status, 204);
  await sendHints(ctx);
  receiver.hints.splice(0);
  await openVote("05SHARED");
  await sendHints(ctx);
  const paths = receiver.hints.splice(0).map(({ path }) => path);
  assert.deepEqual(paths.toSorted(), ["/device", "/shared"]);
  await ask("DELETE", "/w/push", { endpoint }, token);
});

/** The value by which the table finds a device. */
const rowOf = ({ subscription }: Device): Buffer => sha256(subscription.endpoint);

await test("a device whose address does not open, or was moved there from another's, keeps no hint from others", async () => {
  const [broken, moved, whole] = [newDevice("/broken"), newDevice("/moved"), newDevice("/whole")];
  for (const { subscription } of [broken, moved, whole]) await subscribe(subscription);
  await ctx.db.query(sql`
    update push_subscription set subscription_sealed = 'x' where endpoint_sha256 = ${rowOf(broken)}`);
  await ctx.db.query(sql`
    update push_subscription p set subscription_sealed = whole.subscription_sealed from push_subscription whole
    where p.endpoint_sha256 = ${rowOf(moved)} and whole.endpoint_sha256 = ${rowOf(whole)}`);
  await sendHints(ctx);
  receiver.hints.splice(0);
  await openVote("05BROKEN");
  await sendHints(ctx);
  const paths = receiver.hints.splice(0).map(({ path }) => path);
  assert.deepEqual(paths.toSorted(), ["/device", "/whole"]);
  for (const { subscription } of [broken, moved, whole])
    await ask("DELETE", "/w/push", { endpoint: subscription.endpoint }, token);
});

await test("every hint waits a day for its device, and none is sent of a vote that has ended", async () => {
  await openVote("05ENDED", -1);
  await sendHints(ctx);
  assert.deepEqual(receiver.hints, []);
  for (const [id, seconds] of [
    ["05SHORT", 600],
    ["05LONG", 3 * 86_400],
  ] as const) {
    await openVote(id, seconds);
    await sendHints(ctx);
  }
  assert.deepEqual(
    receiver.hints.splice(0).map(({ headers }) => headers["ttl"]),
    ["86400", "86400"],
  );
});

await test("a device that left gets no hints, nor those of earlier votes when it returns", async () => {
  const device = newDevice("/back");
  await subscribe(device.subscription);
  const { endpoint } = device.subscription;
  assert.equal((await ask("DELETE", "/w/push", { endpoint }, token)).status, 204);
  await openVote("06VOTE");
  await sendHints(ctx);
  assert.deepEqual(
    receiver.hints.splice(0).map(({ path }) => path),
    ["/device"],
  );
  assert.equal((await ask("DELETE", "/w/push", {}, token)).status, 204);
  await openVote("07VOTE");
  await sendHints(ctx);
  assert.deepEqual(receiver.hints, []);
  await subscribe(device.subscription);
  await sendHints(ctx);
  assert.equal(receiver.hints.splice(0).length, 1);
});

const countUnlooked = async (): Promise<number | undefined> => {
  const [row] = await ctx.db.query<{ count: number }>(sql`
    select count(*)::int from ballot where status = 'open' and hinted_epoch is distinct from epoch`);
  return row?.count;
};

await test("of many votes that open at once each is examined once, and a device is told while there are any", async () => {
  for (let at = 10; at < 60; at += 1) await openVote(`V${at}`);
  assert.equal(await countUnlooked(), 50);
  await sendHints(ctx, AbortSignal.abort());
  assert.equal(await countUnlooked(), 50, "a process that ends begins nothing more");
  await sendHints(ctx);
  assert.equal(await countUnlooked(), 0);
  assert.ok(receiver.hints.splice(0).length > 0);
  const subjects = await ctx.db.query(sql`select from push_sent where subject like 'ballot:V%'`);
  assert.equal(subjects.length, 50);
});

await test("a process that dies while it examines votes keeps no hint from a member", async () => {
  await openVote("61VOTE");
  const dying = ctx.db.transaction(async (tx) => {
    assert.deepEqual(await markExamined(tx, 20), [{ business, isNew: true }]);
    await tx.query(sql`select pg_terminate_backend(pg_backend_pid())`);
  });
  await assert.rejects(dying);
  await sendHints(ctx);
  assert.equal(receiver.hints.splice(0).length, 1);
});

await test("a hint that one process takes is not taken by another at the same moment", async () => {
  await openVote("61BOTH");
  const take = async (tx: Queryable) =>
    takeDueHints(tx, { now: ctx.clock.now(), businesses: [business] });
  const other = await ctx.db.transaction(async (tx) => {
    assert.equal((await take(tx)).length, 1);
    const taking = ctx.db.transaction(take);
    await untilBlocked(ctx.db, tx, [taking]);
    return { taking };
  });
  assert.deepEqual(await other.taking, []);
});

await test("a device that hangs keeps no hint of a later vote from others", async () => {
  const [hangs, quick] = [newDevice("/hangs").subscription, newDevice("/quick").subscription];
  for (const device of [hangs, quick]) await subscribe(device);
  await openVote("62HANGS");
  let isOver = false;
  const sending = sendHints(ctx).finally(() => (isOver = true));
  await until("it hangs", async () => receiver.hanging.size > 0 || null);
  const [first] = receiver.hanging;
  await ask("DELETE", "/w/push", { endpoint: hangs.endpoint }, token);
  receiver.hints.splice(0);
  await openVote("62QUICK");
  const wasTold = (): boolean => receiver.hints.some(({ path }) => path === "/quick");
  await until("the other is told", async () => wasTold() || isOver || null);
  assert.ok(wasTold() && first?.destroyed === false, "while the first still hangs");
  for (const each of receiver.hanging) each.end();
  await sending;
  await ask("DELETE", "/w/push", { endpoint: quick.endpoint }, token);
  receiver.hints.splice(0);
});

await test("what cannot be a device is refused, and nobody subscribes without a session", async () => {
  const { endpoint, keys } = newDevice("/x").subscription;
  const wrongs = [
    { endpoint: "https://10.0.0.1/x", keys },
    { endpoint: `${ctx.config.baseUrl}/x`, keys },
    { endpoint: "ftp://push.example/x", keys },
    { endpoint, keys: { ...keys, p256dh: Buffer.alloc(65, 4).toString("base64url") } },
    { endpoint, keys: { ...keys, auth: "AAAA" } },
    { endpoint },
  ];
  for (const wrong of wrongs) assert.equal(await subscribe(wrong), 400, JSON.stringify(wrong));
  assert.equal((await ask("POST", "/w/push", { endpoint, keys })).status, 401);
  assert.equal((await ask("DELETE", "/w/push", {})).status, 401);
});

await test("the table shows neither addresses nor keys of devices, and at most ten are kept", async () => {
  for (let made = 0; made < 12; made += 1) await subscribe(newDevice(`/many/${made}`).subscription);
  const [row] = await ctx.db.query<{ rows: string; count: number }>(sql`
    select string_agg(push_subscription::text, ' ') as rows, count(*)::int as count from push_subscription`);
  assert.equal(row?.count, 10);
  const hex = Buffer.from("localhost").toString("hex");
  assert.equal(row?.rows.includes("localhost") || row?.rows.includes(hex), false);
  await sendHints(ctx);
  receiver.hints.splice(0);
  await openVote("62VOTE");
  await sendHints(ctx);
  const paths = receiver.hints.splice(0).map(({ path }) => path);
  const newest = Array.from({ length: 10 }, (_, at) => `/many/${at + 2}`);
  assert.deepEqual(paths.toSorted(), newest.toSorted());
});

await test("a change of the business that voids a vote has its members told again", async () => {
  await sendHints(ctx);
  receiver.hints.splice(0);
  await ctx.db.query(sql`update ballot set epoch = epoch + 1 where id = '07VOTE'`);
  await sendHints(ctx);
  await sendHints(ctx);
  assert.equal(new Set(receiver.hints.map(({ path }) => path)).size, receiver.hints.length);
  assert.ok(receiver.hints.splice(0).length > 0);
});

await test("what was sent is remembered for as long as the vote is open", async () => {
  await ctx.db.query(sql`update push_sent set created_at = 0`);
  await ctx.db.query(
    sql`update ballot set status = 'cancelled', ended_at = 1 where id <> '07VOTE'`,
  );
  await purgeHints(ctx);
  const rows = await ctx.db.query<{ subject: string }>(sql`select subject from push_sent`);
  assert.deepEqual(
    rows.map(({ subject }) => subject),
    ["ballot:07VOTE:1"],
  );
});

await test("an invitation is told of once, also to a device that comes later", async () => {
  const invite = async (address: string): Promise<void> => {
    const deadline = ctx.clock.now() + 600;
    await ctx.db.query(sql`
      insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
      values (${address}, 'live', 'New AG', 'inviting', ${address}, ${address}, ${deadline}, ${randomBytes(32)}, ${randomBytes(24)}, 0)`);
    await addMember(address);
  };
  await ask("DELETE", "/w/push", {}, token);
  await subscribe(newDevice("/early").subscription);
  await sendHints(ctx);
  receiver.hints.splice(0);
  await invite(`0x${"c1".repeat(20)}`);
  await sendHints(ctx);
  await sendHints(ctx);
  assert.equal(receiver.hints.splice(0).length, 1);
  await ask("DELETE", "/w/push", {}, token);
  await invite(`0x${"c2".repeat(20)}`);
  await sendHints(ctx);
  assert.deepEqual(receiver.hints, []);
  await subscribe(newDevice("/later").subscription);
  await sendHints(ctx);
  await sendHints(ctx);
  assert.equal(receiver.hints.splice(0).length, 1);
});

await test("a device of an identity in no business goes 30 days after it was named, and others stay", async () => {
  const stranger = addressOfPrivateKey(randomBytes(32));
  const now = ctx.clock.now();
  const add = async (user: string, days: number): Promise<void> => {
    await ctx.db.query(sql`
      insert into push_subscription (id, user_address, endpoint_sha256, subscription_sealed, created_at)
      values (${randomUUID()}, ${user}, ${randomBytes(32)}, '', ${now - days * 86_400})`);
  };
  await ctx.db.query(sql`delete from push_subscription`);
  await add(stranger, 31);
  await add(stranger, 29);
  await add(person, 31);
  await purgeDevices(ctx);
  const left = await ctx.db.query<{ user_address: string; created_at: number }>(sql`
    select user_address, created_at from push_subscription order by created_at`);
  assert.deepEqual(
    left.map((row) => [row.user_address, (now - row.created_at) / 86_400]),
    [
      [person, 31],
      [stranger, 29],
    ],
  );
  await ctx.db.transaction(async (tx) => deletePushOf(tx, stranger));
});

await test("deleting an identity removes its devices and the record of their hints, and nobody else's", async () => {
  await ctx.db.query(
    sql`insert into push_sent (subject, member, created_at) values ('vote', ${business}, 0)`,
  );
  await ctx.db.transaction(async (tx) => deletePushOf(tx, person));
  const [left] = await ctx.db.query<{ devices: number; hints: number }>(sql`
    select (select count(*)::int from push_subscription) as devices,
      (select count(*)::int from push_sent) as hints`);
  assert.deepEqual(left, { devices: 0, hints: 1 }, "another was told of a vote as well");
});

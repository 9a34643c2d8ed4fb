import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { type Address, addressOfPrivateKey, sessionDigest, signDigest } from "@svc/protocol";
import { openTestContext } from "../../../test/test-context.ts";
import { advanceClock } from "../platform/clock.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { createHttp, type Http } from "../platform/http/http.ts";
import { createOutbound } from "../platform/outbound/outbound.ts";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import { walletRoutes } from "./index.ts";
import { deleteBoxesOf, insertBox } from "./mailbox-store.ts";
import { purgeMailbox } from "./mailbox.ts";
import type { WalletDeps } from "./routes.ts";

await using ctx = await openTestContext({ LIMIT_LOOPBACK: "false" });
const deps: WalletDeps = {
  verifySession: async ({ address, digest, signature }) =>
    recoverAddress(digest, signature) === address,
  listLogins: async () => ({ items: [] }),
  endLogin: async () => false,
  addRoutes: () => undefined,
};
await using http = createHttp(ctx);
await walletRoutes(ctx, http, deps);

type Answer = { status: number; body: Record<string, unknown>; reason: unknown };

async function call(
  path: string,
  body: unknown,
  { token, on = http }: { token?: string; on?: Http } = {},
): Promise<Answer> {
  const answer = await on.inject({
    method: "POST",
    url: path,
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    payload: JSON.stringify(body),
  });
  const said = answer.json<Record<string, unknown>>();
  const { reason } = (said["error"] ?? {}) as { reason?: unknown };
  return { status: answer.statusCode, body: said, reason };
}

async function openSession(): Promise<{ token: string; address: Address }> {
  const key = randomBytes(32);
  const address = addressOfPrivateKey(key);
  const { body: asked } = await call("/w/session/challenge", {});
  const { challenge, deadline, origin } = asked as {
    challenge: string;
    deadline: number;
    origin: string;
  };
  const signature = signDigest(sessionDigest({ origin, challenge, deadline }), key);
  const opened = await call("/w/session", { svcID: address, challenge, deadline, signature });
  return { token: String(opened.body["token"]), address };
}

const { token, address } = await openSession();
const box = "c2VhbGVk";
const inMinutes = (minutes: number): number => ctx.clock.now() + minutes * 60;
const leave = async (expiresAt = inMinutes(10), as = token): Promise<Answer> =>
  call("/w/mailbox", { box, expiresAt }, { token: as });
const take = async (id: unknown, reader?: string): Promise<Answer> =>
  call(`/w/mailbox/${String(id)}/take`, { reader });
const [reader, anotherReader] = ["r".repeat(22), "s".repeat(22)] as const;

await test("a box is taken once", async () => {
  const made = await leave();
  assert.equal(made.status, 201);
  assert.equal(made.body["pickUpUrl"], `${ctx.config.walletOrigin}/p`);
  assert.deepEqual((await take(made.body["id"])).body, { box });
  assert.deepEqual((await take(made.body["id"])).reason, "mailbox_empty");
});

await test("of twenty readers at once one gets the box", async () => {
  const { body } = await leave();
  const answers = await Promise.all(Array.from({ length: 20 }, async () => take(body["id"])));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(answers.filter(({ reason }) => reason === "mailbox_empty").length, 19);
});

await test("whoever took a box takes it again within a minute, as after a lost answer, and nobody else does", async () => {
  const { body } = await leave();
  const readers = Array.from({ length: 20 }, (_, at) => reader + at);
  const answers = await Promise.all(readers.map(async (each) => take(body["id"], each)));
  const winners = readers.filter((_, at) => answers[at]?.status === 200);
  assert.equal(winners.length, 1);
  const known = await ctx.db.query(
    sql`select from mailbox where id_sha256 = ${sha256(String(body["id"]))}`,
  );
  assert.deepEqual(known, [], "a process that knows of no readers would give it to the next");
  const [{ body: soonOver }, { body: late }] = [await leave(ctx.clock.now() + 40), await leave()];
  for (const { id } of [soonOver, late]) assert.equal((await take(id, reader)).status, 200);
  const advance = async (seconds: number): Promise<void> => {
    await advanceClock(ctx.db, seconds);
    await ctx.clock.refresh();
  };
  await advance(20);
  for (const { id } of [soonOver, late]) {
    assert.deepEqual((await take(id, reader)).body, { box });
    for (const other of [anotherReader, undefined])
      assert.equal((await take(id, other)).reason, "mailbox_empty");
  }
  await advance(20);
  assert.equal((await take(soonOver["id"], reader)).reason, "mailbox_empty", "its time is over");
  assert.equal((await take(late["id"], reader)).status, 200);
  await advance(20);
  assert.equal((await take(late["id"], reader)).reason, "mailbox_empty");
  await purgeMailbox(ctx);
  assert.deepEqual(await ctx.db.query(sql`select from mailbox`), []);
});

await test("a reader is a secret of 22 characters at least, or none", async () => {
  const { body } = await leave();
  for (const wrong of ["", "r".repeat(21), "r".repeat(65), `${reader}+`, 1, null])
    assert.equal((await take(body["id"], wrong as string)).reason, "invalid_request");
  const url = `/w/mailbox/${String(body["id"])}/take`;
  assert.equal((await http.inject({ method: "POST", url })).statusCode, 200);
});

await test("the table does not hold what takes a box", async () => {
  const { body } = await leave();
  await take(body["id"], reader);
  const [row] = await ctx.db.query<{ row: string }>(
    sql`select string_agg(mailbox::text, ' ') as row from mailbox`,
  );
  for (const secret of [String(body["id"]), reader]) assert.equal(row?.row.includes(secret), false);
});

await test("a look at the path of a box takes nothing", async () => {
  const { body } = await leave();
  const path = `/w/mailbox/${String(body["id"])}/take`;
  for (const method of ["GET", "HEAD"] as const)
    assert.equal((await http.inject({ method, url: path })).statusCode, 405);
  assert.equal((await take(body["id"])).status, 200);
});

await test("a box is gone at its time, whether or not it was purged", async () => {
  const { body } = await leave(inMinutes(5));
  const { body: soon } = await leave(inMinutes(6));
  const { body: later } = await leave(inMinutes(60));
  await advanceClock(ctx.db, 300);
  await ctx.clock.refresh();
  assert.equal((await take(body["id"])).reason, "mailbox_empty");
  await purgeMailbox(ctx);
  const [row] = await ctx.db.query<{ left: number }>(
    sql`select count(*)::int as left from mailbox`,
  );
  assert.equal(row?.left, 2);
  for (const { id } of [soon, later]) assert.equal((await take(id)).status, 200);
});

await test("a box lies at most an hour", async () => {
  for (const minutes of [-1, 0, 62, 100_000])
    assert.equal((await leave(inMinutes(minutes))).reason, "invalid_request", String(minutes));
  for (const minutes of [60, 61])
    assert.equal((await leave(inMinutes(minutes))).status, 201, "a wallet's clock may be ahead");
});

await test("a box is at most 256 KiB of base64url", async () => {
  const expiresAt = inMinutes(10);
  const most = "a".repeat(256 * 1024);
  assert.equal((await call("/w/mailbox", { box: most, expiresAt }, { token })).status, 201);
  const longer = await call("/w/mailbox", { box: `${most}a`, expiresAt }, { token });
  assert.equal(longer.reason, "invalid_request");
  const huge = await call("/w/mailbox", { box: most + most, expiresAt }, { token });
  assert.equal(huge.reason, "body_too_large");
  for (const wrong of ["", "a b", "a\u0000"])
    assert.ok((await call("/w/mailbox", { box: wrong, expiresAt }, { token })).status === 400);
});

await test("a wallet leaves at most twenty boxes at once, and only in a session", async () => {
  const other = await openSession();
  let last: unknown;
  for (let made = 0; made < 20; made += 1) {
    const { status, body } = await leave(inMinutes(10), other.token);
    assert.equal(status, 201);
    last = body["id"];
  }
  assert.equal((await leave(inMinutes(10), other.token)).reason, "too_many");
  await take(last, reader);
  assert.equal((await leave(inMinutes(10), other.token)).status, 201, "what was taken is none");
  assert.equal((await leave(inMinutes(10), other.token)).reason, "too_many");
  assert.equal((await leave()).status, 201);
  for (const wrong of ["", "x".repeat(43)])
    assert.equal((await leave(inMinutes(10), wrong)).reason, "wallet_session_required");
});

await test("boxes of one wallet are counted one after the other, so that two at once share no last place", async () => {
  const expiresAt = inMinutes(10);
  const fill = async (tx: Queryable, user: Address): Promise<boolean> => {
    const row = { idSha256: randomBytes(32), user, box, createdAt: ctx.clock.now(), expiresAt };
    return insertBox(tx, row, 1);
  };
  const meanwhile = async (user: Address): Promise<boolean> =>
    ctx.db.transaction(async (tx) => {
      await tx.query(sql`set local lock_timeout = '50ms'`);
      return fill(tx, user);
    });
  const [own, other] = [addressOfPrivateKey(randomBytes(32)), addressOfPrivateKey(randomBytes(32))];
  await ctx.db.transaction(async (tx) => {
    assert.equal(await fill(tx, own), true);
    await assert.rejects(meanwhile(own), /lock timeout/);
    assert.equal(await meanwhile(other), true);
  });
  assert.equal(await meanwhile(own), false);
  assert.equal(await deleteBoxesOf(ctx.db, own), 1);
  assert.equal(await meanwhile(other), false, "whoever is deleted takes no box of another along");
});

await using receiver = await openReceiver();

async function openReceiver() {
  const received: { path: string; body: string; headers: object }[] = [];
  const server = createServer((request, response) => {
    void answer(request, response);
  });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    received.push({ path: request.url ?? "", body, headers: request.headers });
    if (request.url === "/redirect")
      response.writeHead(302, { location: "/elsewhere" }).end("there");
    else if (request.url === "/huge") response.end("x".repeat(65 * 1024));
    else response.writeHead(202).end(`{"taken":true}`);
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    received,
    url: (path: string) => `http://localhost:${port}${path}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const relay = async (url: string, body: object = { svcID: address }, on = http): Promise<Answer> =>
  call("/w/relay", { url, body }, { token, on });

await test("boxes whose time is over keep nobody from leaving another, purged or not", async () => {
  const { token: own } = await openSession();
  for (let made = 0; made < 20; made += 1) await leave(inMinutes(5), own);
  assert.equal((await leave(inMinutes(5), own)).reason, "too_many");
  await advanceClock(ctx.db, 300);
  await ctx.clock.refresh();
  assert.equal((await leave(inMinutes(5), own)).status, 201);
});

await test("no page but one of the wallet's own origin reads what wallets are answered", async () => {
  const { walletOrigin } = ctx.config;
  for (const [origin, allowed] of [
    [walletOrigin, walletOrigin],
    [`${walletOrigin}.evil.example`, undefined],
    ["null", undefined],
  ] as const) {
    for (const method of ["POST", "OPTIONS"] as const) {
      const { headers } = await http.inject({
        method,
        url: "/w/session/challenge",
        headers: { origin },
      });
      assert.equal(headers["access-control-allow-origin"], allowed, `${method} ${origin}`);
      const seen = headers["access-control-expose-headers"];
      const expected = allowed === undefined ? undefined : "Retry-After, X-Request-Id";
      if (method === "POST") assert.equal(seen, expected, `${method} ${origin}`);
      assert.equal(headers["access-control-allow-credentials"], undefined);
      assert.equal(headers["vary"], "origin", "no cache hands one the answer to another");
    }
  }
});

await test("the relay sends an answer once and tells what the other side said", async () => {
  const answer = await relay(receiver.url("/x?y=1"), { svcID: address, infos: "e30=" });
  assert.deepEqual(answer.body, { status: 202, text: `{"taken":true}` });
  const [only, more] = receiver.received.splice(0);
  assert.deepEqual(
    [only?.path, only?.body, more],
    ["/x?y=1", JSON.stringify({ svcID: address, infos: "e30=" }), undefined],
  );
  const headers = JSON.stringify(only?.headers);
  assert.equal(headers.includes(token) || headers.includes("cookie"), false);
});

await test("the relay follows no redirect and waits for no endless answer", async () => {
  assert.deepEqual((await relay(receiver.url("/redirect"))).body, { status: 302, text: "there" });
  assert.equal((await relay(receiver.url("/huge"))).reason, "not_delivered");
  assert.equal(receiver.received.splice(0).length, 2);
});

await test("the relay sends for the session's own identity alone, and for nobody without a session", async () => {
  const stranger = { svcID: `0x${"11".repeat(20)}` };
  assert.equal((await relay(receiver.url("/x"), stranger)).reason, "invalid_request");
  assert.equal((await relay(receiver.url("/x"), { svcID: 7 })).reason, "invalid_request");
  assert.equal((await relay(receiver.url("/x"), { error: "access_denied" })).status, 200);
  const unknown = await call("/w/relay", { url: receiver.url("/x"), body: {} });
  assert.equal(unknown.reason, "wallet_session_required");
  assert.equal(receiver.received.splice(0).length, 1);
});

await test("the relay reaches nothing on this machine or its network in production", async () => {
  const outbound = createOutbound({
    profile: "production",
    ownHosts: ["id.example.com"],
    resolve: { addresses: async () => ["127.0.0.1"], txt: async () => [] },
  });
  await using guarded = createHttp(ctx);
  await walletRoutes({ ...ctx, outbound }, guarded, deps);
  const { port } = receiver;
  const hosts = [
    "localhost",
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0.0.0.0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "169.254.169.254",
    "10.0.0.1",
    "rebound.example.com",
    "id.example.com",
    "user@rebound.example.com",
    "localhost.",
  ];
  for (const host of hosts)
    for (const scheme of ["http", "https"]) {
      const answer = await relay(`${scheme}://${host}:${port}/`, { svcID: address }, guarded);
      assert.deepEqual([answer.status, answer.reason], [422, "not_delivered"], host);
    }
  for (const url of ["file:///etc/passwd", "gopher://x.example/", "ftp://x.example/", "//x", "x"])
    assert.equal((await relay(url, { svcID: address }, guarded)).reason, "not_delivered", url);
  assert.deepEqual(receiver.received, []);
  await outbound.close();
});

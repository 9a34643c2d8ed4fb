import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { shortAddress } from "@svc/protocol";
import { SMTPServer } from "smtp-server";
import { untilAvailable } from "../../../test/try-again.ts";
import { parseConfig } from "../platform/config/config.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { Problem } from "../platform/http/problems.ts";
import { createMailer, type Mailer, type Message } from "../platform/mail.ts";
import { keepPauses } from "../platform/test-pauses.ts";
import { finishVerification, leaseMessages, noteSent, takeTry } from "./email-store.ts";
import { mailboxOf, parseEmailAddress } from "./email-address.ts";
import { purgeVerifications, sendMessages, startVerification } from "./email.ts";
import { getBuiltInIssuer } from "./issuers.ts";
import {
  giveCredential,
  openTestCredentials,
  someUser,
  type TestCredentials,
} from "./test-credentials.ts";
import { dumpDatabase } from "./test-credentials-store.ts";

await using world = await openTestCredentials();
const { ctx } = world;

interface Asking {
  readonly environment?: string;
  readonly acceptLanguage?: string;
}

const start = async (
  user: string,
  email: string,
  on: TestCredentials = world,
  { acceptLanguage = "", ...more }: Asking = {},
) =>
  on.call({
    method: "POST",
    url: "/w/emails",
    as: user,
    body: { email, ...more },
    headers: { "accept-language": acceptLanguage },
  });
const finish = async (user: string, id: unknown, code: string) =>
  world.call({ method: "POST", url: `/w/emails/${String(id)}`, as: user, body: { code } });
const reasonOf = (body: Record<string, unknown>): unknown =>
  (body["error"] as Record<string, unknown>)["reason"];

/** Starts a verification, and takes the code from the message. */
async function begin(user: string, email: string, more: Asking = {}) {
  const { status, body } = await start(user, email, world, more);
  assert.equal(status, 202);
  await sendMessages(ctx, ctx.mailer ?? assert.fail());
  const message = world.messages.splice(0).at(-1);
  assert.equal(message?.to, email);
  const code = /: (\d{6})$/m.exec(message.text)?.[1] ?? assert.fail("no code in the message");
  return { id: body["verificationId"], expiresAt: body["expiresAt"], code, message };
}

/** A mailer that uses a mail server on this machine. */
function mailerTo(port: number, profile: "dev" | "production" = "dev"): Mailer {
  const given = {
    SMTP_URL: `smtp://127.0.0.1:${port}`,
    MAIL_FROM: "Example: codes <id@example.com>",
  };
  const config = { ...parseConfig(given), baseUrl: "https://id.example.com", profile };
  return createMailer({ ...ctx, config }) ?? assert.fail();
}

const wrongOf = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, "0");

await test("200: the code from the message makes EMAIL a verified field of that user", async () => {
  const user = someUser();
  const { id, code, expiresAt, message } = await begin(user, "alice@example.com");
  assert.equal(expiresAt, ctx.clock.now() + 600);
  assert.ok(!message.text.includes(user), "the message shows the short form alone");
  const { status, body } = await finish(user, id, code);
  assert.equal(status, 200);
  await world.settle();
  const url = `/api/v1/blockchain/verified?user=${user}&items=EMAIL`;
  const verified = await world.call({ method: "GET", url, as: world.live.apiKey });
  assert.deepEqual(verified.body["data"], { verifiedItems: ["EMAIL"] });
  const { body: own } = await world.call({ method: "GET", url: "/w/credentials", as: user });
  const [item] = own["items"] as {
    id: string;
    fields: { data: string; expiresAt: number }[];
  }[];
  assert.equal(item?.id, body["credentialId"]);
  assert.equal(item?.fields[0]?.data, "alice@example.com");
  assert.equal(item.fields[0].expiresAt, ctx.clock.now() + 365 * 86_400);
});

await test("200: an address that is verified on the side of the sandbox counts there alone", async () => {
  const user = someUser();
  const { id, code } = await begin(user, "sandy@example.com", { environment: "sandbox" });
  await finish(user, id, code);
  await world.settle();
  const url = `/api/v1/blockchain/verified?user=${user}&items=EMAIL`;
  const inLive = await world.call({ method: "GET", url, as: world.live.apiKey });
  assert.deepEqual(inLive.body["data"], { unVerifiedItems: ["EMAIL"] });
  const inSandbox = await world.call({ method: "GET", url, as: world.sandbox.apiKey });
  assert.deepEqual(inSandbox.body["data"], { verifiedItems: ["EMAIL"] });
});

await test("the message is in the language that the wallet's request prefers, and in English otherwise", async () => {
  const cases: [string, RegExp][] = [
    ["*", /^Type this code into your wallet: /],
    ["rm, de-CH;q=0.9", /^Geben Sie diesen Code in Ihrem Wallet ein: /],
    ["fr", /^Saisissez ce code dans votre portefeuille\u00a0: /],
    ["en;q=0.3, it", /^Inserisci questo codice nel wallet: /],
    ["es-MX", /^Escriba este código en su monedero: /],
  ];
  for (const [index, [acceptLanguage, first]] of cases.entries()) {
    const user = someUser();
    const { code, message } = await begin(user, `reader${index}@example.com`, { acceptLanguage });
    assert.match(message.text, first);
    assert.ok(message.subject.startsWith(`${code} `), message.subject);
    assert.ok(message.text.includes(` ${shortAddress(user)} `), message.text);
    assert.doesNotMatch(message.text, /['"]|ß|\.\.\.|undefined/);
    assert.equal(message.text.split("\n").length, 4);
  }
});

await test("422, then 410: five wrong codes end a verification, and the right one comes too late", async () => {
  const user = someUser();
  const { id, code } = await begin(user, "guess@example.com");
  for (let time = 0; time < 5; time += 1) {
    const { status, body } = await finish(user, id, wrongOf(code));
    assert.deepEqual([status, reasonOf(body)], [422, "code_wrong"]);
  }
  const { status, body } = await finish(user, id, code);
  assert.deepEqual([status, reasonOf(body)], [410, "verification_over"]);
});

await test("of a hundred guesses at the same moment only five are checked", async () => {
  const user = someUser();
  const { id, code } = await begin(user, "race@example.com");
  const guess = async () => untilAvailable(async () => finish(user, id, wrongOf(code)));
  const answers = await Promise.all(Array.from({ length: 100 }, guess));
  assert.equal(answers.filter(({ status }) => status === 422).length, 5);
  assert.equal(answers.filter(({ status }) => status === 410).length, 95);
});

await test("a code is good once, and a repeated request, even a concurrent one, gets the same answer", async () => {
  const user = someUser();
  const { id, code } = await begin(user, "once@example.com");
  const answers = await Promise.all([1, 2, 3, 4].map(async () => finish(user, id, code)));
  answers.push(await finish(user, id, code));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(new Set(answers.map(({ body }) => body["credentialId"])).size, 1);
  const { body: own } = await world.call({ method: "GET", url: "/w/credentials", as: user });
  assert.equal((own["items"] as unknown[]).length, 1);
  assert.equal(reasonOf((await finish(user, id, wrongOf(code))).body), "verification_over");
});

await test("a message is sent by one process only, and its code is then deleted", async () => {
  const id = String((await start(someUser(), "leased@example.com")).body["verificationId"]);
  const now = ctx.clock.now();
  const lease = async (tx: Queryable): Promise<string[]> =>
    (await leaseMessages(tx, { now, leasedUntil: now + 9, limit: 9 })).map((each) => each.id);
  const readKept = async () =>
    ctx.db.query(sql`
      select email_sealed is null as email, code_sealed is null as code from email_verification where id = ${id}`);
  await ctx.db.transaction(async (tx) => {
    assert.deepEqual(await lease(tx), [id]);
    await ctx.db.transaction(async (other) => {
      await other.query(sql`set local lock_timeout = '2s'`);
      assert.deepEqual(await lease(other), []);
    });
  });
  await noteSent(ctx.db, id, now);
  assert.deepEqual(await readKept(), [{ email: false, code: true }]);
  const unsent = await start(someUser(), "unsent@example.com");
  const over = String(unsent.body["verificationId"]);
  const issuer = await getBuiltInIssuer(ctx, "email", "live");
  const given = await giveCredential(world, issuer, { user: someUser() });
  await finishVerification(ctx.db, over, given.id);
  const [left] = await ctx.db.query(sql`
    select email_sealed, code_sealed, send_due_at from email_verification where id = ${over}`);
  assert.deepEqual(left, { email_sealed: null, code_sealed: null, send_due_at: null });
});

await test("404: another user's verification cannot be finished, and loses no try to strangers", async () => {
  const user = someUser();
  const stranger = someUser();
  const { id, code } = await begin(user, "mine@example.com");
  for (let time = 0; time < 8; time += 1) {
    const { status, body } = await finish(stranger, id, code);
    assert.deepEqual([status, reasonOf(body)], [404, "verification_not_found"]);
  }
  const [as, now] = [{ id: String(id), triesMax: 5 }, ctx.clock.now()];
  assert.equal(await takeTry(ctx.db, { ...as, user: stranger, now }), null);
  assert.equal((await finish(user, id, code)).status, 200);
});

await test("the code of one verification is wrong for another, even if its MAC was copied there", async () => {
  const user = someUser();
  const first = await begin(user, "first@example.com");
  const second = await begin(user, "second@example.com");
  if (first.code === second.code) return;
  assert.equal((await finish(user, second.id, first.code)).status, 422);
  await ctx.db.query(sql`
    update email_verification set code_mac = (select code_mac from email_verification where id = ${first.id})
    where id = ${second.id}`);
  assert.equal((await finish(user, second.id, first.code)).status, 422);
});

await test("a code is no good for another user, even if its verification was moved to that user", async () => {
  const other = someUser();
  const { id, code } = await begin(someUser(), "moved@example.com");
  await ctx.db.query(sql`update email_verification set user_address = ${other} where id = ${id}`);
  assert.equal((await finish(other, id, code)).status, 422);
});

await test("a code verifies only the mailbox to which it was sent, even if another was copied there", async () => {
  const user = someUser();
  const theirs = await begin(someUser(), "theirs@example.com");
  const { id, code } = await begin(user, "mine@example.com");
  await ctx.db.query(sql`
    update email_verification set email_sealed = (select email_sealed from email_verification where id = ${theirs.id})
    where id = ${id}`);
  assert.equal((await finish(user, id, code)).status, 500);
  const issued = await ctx.db.query(sql`select from credential where user_address = ${user}`);
  assert.equal(issued.length, 0);
});

await test("410: a code is over after ten minutes, and forgotten later", async () => {
  const user = someUser();
  const { id, code } = await begin(user, "late@example.com");
  world.advance(600);
  assert.equal((await finish(user, id, code)).status, 410);
  world.advance(600);
  await purgeVerifications(ctx);
  assert.equal((await finish(user, id, code)).status, 404);
});

await test("400: what is no address in its everyday form is refused, and so is what is no code", async () => {
  const user = someUser();
  for (const email of ["alice", "a@localhost", "a b@example.com", "a@example.com,b@example.com"])
    assert.equal((await start(user, email)).status, 400, email);
  const injected = "a@example.com\r\nBcc: b@example.com";
  assert.equal((await start(user, injected)).status, 400);
  const { id } = await begin(user, "code@example.com");
  for (const code of ["12345", "1234567", "abcdef", "１２３４５６"])
    assert.equal((await finish(user, id, code)).status, 400, code);
});

await test("429: one mailbox gets five codes, whoever asks and however it is spelled", async () => {
  const spellings = ["box@example.com", "BOX@example.com", "box+1@example.com", "box@EXAMPLE.com"];
  for (const spelling of [...spellings, "Box+2@example.com"])
    assert.equal((await start(someUser(), spelling)).status, 202);
  const { status, body, headers } = await start(someUser(), "box@example.com");
  assert.deepEqual([status, reasonOf(body)], [429, "rate_limited"]);
  assert.ok(Number(headers["retry-after"]) > 0);
});

await test("429: one identity gets ten codes, whatever the mailboxes", async () => {
  const user = someUser();
  for (let time = 0; time < 10; time += 1)
    assert.equal((await start(user, `many${time}@example.com`)).status, 202);
  assert.equal((await start(user, "many@example.com")).status, 429);
});

await test("429: one network gets sixty codes, whatever identities and mailboxes", async () => {
  await using limited = await openTestCredentials({ TRUSTED_PROXIES: "127.0.0.0/8" });
  const startFrom = async (address: string): Promise<number> => {
    const headers = { "x-forwarded-for": address };
    const [as, body] = [someUser(), { email: `${randomUUID()}@example.com` }];
    return (await limited.call({ method: "POST", url: "/w/emails", as, body, headers })).status;
  };
  for (let time = 0; time < 60; time += 1) assert.equal(await startFrom(`2001:db8::${time}`), 202);
  assert.equal(await startFrom("2001:db8::ff"), 429);
  assert.equal(await startFrom("2001:db8:0:1::"), 202);
});

await test("neither address nor code stands in the database in the clear", async () => {
  const user = someUser();
  const { body } = await start(user, "canary-7719@example.com");
  const waiting = await dumpDatabase(ctx.db);
  await sendMessages(ctx, ctx.mailer ?? assert.fail());
  const sent = world.messages.splice(0).at(-1);
  const code = /: (\d{6})$/m.exec(sent?.text ?? "")?.[1] ?? assert.fail();
  const after = await dumpDatabase(ctx.db);
  for (const dump of [waiting, after]) {
    assert.ok(!dump.includes("canary-7719"));
    assert.ok(!dump.includes(Buffer.from("canary-7719").toString("hex")));
    assert.ok(!new RegExp(`\\b${code}\\b`).test(dump));
  }
  assert.ok(after.includes(String(body["verificationId"])));
});

await test("a message that the server does not take is tried again, four times at most, and no log tells the address", async () => {
  await using failing = await openTestCredentials();
  const lines: unknown[] = [];
  const log = { ...failing.ctx.log, warn: (...line: unknown[]) => void lines.push(line) };
  const tried: Message[] = [];
  const mailer = {
    send: async (message: Message): Promise<void> => {
      tried.push(message);
      throw Object.assign(new Error(`550 no mailbox ${message.to}`), { code: "EENVELOPE" });
    },
    close: () => undefined,
  };
  assert.equal((await start(someUser(), "gone@example.com", failing)).status, 202);
  for (let time = 0; time < 8; time += 1) {
    await sendMessages({ ...failing.ctx, log }, mailer);
    failing.advance(60);
  }
  assert.equal(tried.length, 4);
  assert.equal(new Set(tried.map(({ text }) => text)).size, 1);
  assert.ok(!inspect(lines, { depth: null }).includes("gone@"));
  assert.equal((await start(someUser(), "away@example.com", failing)).status, 202);
  failing.advance(600);
  await sendMessages(failing.ctx, mailer);
  assert.equal(tried.length, 4, "a code that is over is not sent");
  assert.equal(new Set(tried.map(({ id }) => id)).size, 1, "a copy is known as one");
  const refusing = {
    ...mailer,
    send: async (): Promise<void> => {
      throw Object.assign(new Error("535"), { code: "EAUTH", responseCode: 535, permanent: true });
    },
  };
  assert.equal((await start(someUser(), "never@example.com", failing)).status, 202);
  await sendMessages(failing.ctx, refusing);
  failing.advance(60);
  await sendMessages(failing.ctx, mailer);
  assert.equal(tried.length, 4, "what is refused for good is not tried again");
});

await test("two processes send a message once", async () => {
  await start(someUser(), "pair@example.com");
  const mailer = ctx.mailer ?? assert.fail();
  await Promise.all([sendMessages(ctx, mailer), sendMessages(ctx, mailer)]);
  assert.equal(world.messages.splice(0).length, 1);
});

await test("a message that the server takes slowly does not delay later ones", async (t) => {
  // Otherwise the queue would be read again after a pause, even if nothing woke it.
  keepPauses(t);
  const taken = Promise.withResolvers<void>();
  const begun: string[] = [];
  const mailer = {
    async send({ to }: Message): Promise<void> {
      begun.push(to);
      if (to === "slow@example.com") await taken.promise;
    },
    close: () => undefined,
  };
  let news = Promise.withResolvers<void>();
  await start(someUser(), "slow@example.com");
  const sent = sendMessages(ctx, mailer, { nextWake: async () => news.promise });
  while (begun.length < 1) await turn();
  await start(someUser(), "quick@example.com");
  news.resolve();
  news = Promise.withResolvers();
  const late = AbortSignal.timeout(60_000);
  while (begun.length < 2 && !late.aborted) await turn();
  assert.deepEqual(begun, ["slow@example.com", "quick@example.com"]);
  taken.resolve();
  await sent;
});

await test("with a mail server the message goes there by SMTP, to the one address", async () => {
  const received: { from: string; to: string[]; client: string; text: string }[] = [];
  const server = new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    onData(stream, { envelope, hostNameAppearsAs }, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        received.push({
          from: envelope.mailFrom === false ? "" : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          client: hostNameAppearsAs,
          text: Buffer.concat(chunks).toString(),
        });
        callback();
      });
    },
  });
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const { port } = server.server.address() as AddressInfo;
  const mailer = mailerTo(port);
  const id = "01968f3e-0000-7000-8000-000000000001";
  const message = { id, to: "alice@example.com", subject: "123456 is your code", text: "Hello" };
  await mailer.send(message);
  mailer.close();
  server.close(() => undefined);
  assert.equal(received.length, 1);
  const { from, to, client, text = "" } = received[0] ?? {};
  assert.deepEqual([from, to], ["id@example.com", ["alice@example.com"]]);
  assert.equal(client, "id.example.com", "the server is told a name that is a host's");
  assert.match(text, /^From: "Example: codes" <id@example\.com>\r$/m);
  assert.match(text, /^Subject: 123456 is your code\r$/m);
  assert.match(text, /^To: alice@example\.com\r$/m);
  assert.match(text, new RegExp(`^Message-ID: <${id}@example\\.com>\\r$`, "m"));
});

await test("in production a server that does not offer TLS is told no address and no code", async (t) => {
  const told: string[] = [];
  const server = new SMTPServer({
    disabledCommands: ["AUTH", "STARTTLS"],
    onMailFrom({ address }, _session, callback) {
      told.push(address);
      callback(new Error("enough"));
    },
  });
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const mailer = mailerTo((server.server.address() as AddressInfo).port, "production");
  t.after(() => {
    mailer.close();
    server.close(() => undefined);
  });
  const [id, to] = ["01968f3e-0000-7000-8000-000000000002", "alice@example.com"];
  const message = { id, to, subject: "123456 is your code", text: "Hello" };
  await assert.rejects(mailer.send(message), { command: "STARTTLS" });
  assert.deepEqual(told, []);
});

await test("a server whose answer does not end is given up before the message is due again", async (t) => {
  const limit = new AbortController();
  t.mock.method(AbortSignal, "timeout", (ms: number) => {
    assert.ok(ms < 120_000, "before the message is due again");
    return limit.signal;
  });
  const server = createServer((socket) => {
    t.after(() => socket.destroy());
    socket.on("error", () => undefined);
    socket.write("220 mail.example.com\r\n");
    socket.once("data", () => socket.write("250-one more\r\n", () => limit.abort()));
  });
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sent = mailerTo(port).send({ id: "1", to: "a@example.com", subject: "s", text: "t" });
  await assert.rejects(sent, { name: "AbortError" });
});

await test("in dev without a mail server a message becomes a file that only its owner reads", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-mail-"));
  const config = parseConfig({ DATA_DIR: directory });
  const mailer = createMailer({ ...ctx, config }) ?? assert.fail();
  await mailer.send({ id: "1", to: "alice@example.com", subject: "s", text: "t" });
  const [name = ""] = await readdir(join(directory, "mail"));
  const path = join(directory, "mail", name);
  assert.match(await readFile(path, "utf8"), /^To: alice@example\.com\n/);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(join(directory, "mail"))).mode & 0o777, 0o700);
  await rm(directory, { recursive: true });
});

await test("422: in production without a mail server the verification is switched off", async () => {
  const config = { ...ctx.config, profile: "production" as const };
  const mailer = createMailer({ ...ctx, config });
  assert.equal(mailer, null);
  const given = {
    email: "a@example.com",
    environment: "live",
    clientAddress: "192.0.2.1",
    locale: "en",
  } as const;
  await assert.rejects(
    startVerification({ ...ctx, mailer }, someUser(), given),
    (error) => error instanceof Problem && error.status === 422 && error.reason === "unsupported",
  );
  assert.throws(() => parseConfig({ SMTP_URL: "smtp://mail.example.com" }), /MAIL_FROM/);
});

await test("an address that could be read in two ways is refused", () => {
  assert.equal(parseEmailAddress("A.b+c@MAIL.Example.com"), "A.b+c@mail.example.com");
  const labels = `${"b".repeat(61)}.${"c".repeat(61)}.${"d".repeat(61)}`;
  const longest = `${"a".repeat(64)}@${labels}.ccc`;
  assert.deepEqual([longest.length, parseEmailAddress(longest)], [254, longest]);
  for (const other of [
    `${"a".repeat(65)}@example.com`,
    `${longest}c`,
    "a@b",
    "a@-b.com",
    "a..b@c.com",
    ".a@c.com",
    "a@c.com.",
    "a@[127.0.0.1]",
    "ä@c.com",
  ])
    assert.equal(parseEmailAddress(other), null, other);
  assert.equal(mailboxOf("Ann+shop@Example.com"), "ann@example.com");
  assert.equal(mailboxOf("a.n.n@googlemail.com"), mailboxOf("ann@gmail.com"));
});

// What a hostile browser would do to the status channel of its own login.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { type OpenPage, openPage, statusOf } from "../login-flow.ts";
import { claim, decline, newIdentity, scan, tryClaim } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

function eventsRequest(page: OpenPage): string {
  const cookie = [...page.jar.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  return `GET /oauth2/login/${page.loginId}/events HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`;
}

async function openSocket(): Promise<Socket> {
  const socket = connect(Number(new URL(world.baseUrl).port), "localhost");
  await once(socket, "connect");
  return socket.setEncoding("utf8");
}

async function readUntil(socket: Socket, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const part of socket.iterator({ destroyOnReturn: false })) {
    text += String(part);
    if (pattern.test(text)) break;
  }
  return text;
}

test("a stream that waits behind another one of its connection is refused, so nothing piles up in it", async () => {
  let answer = await answerBehindAnother();
  // On a slow machine the first stream may be over before the second login is read; then nothing was waited for.
  for (let again = 0; again < 10 && !answer.startsWith("HTTP/1.1 400"); again += 1)
    answer = await answerBehindAnother();
  assert.match(answer, /^HTTP\/1\.1 400[^]*needs a connection of its own/);
  assert.equal((await fetch(`${world.baseUrl}/health/alive`)).status, 200);
});

/** @returns the answer to the second of two streams that were requested on one connection */
async function answerBehindAnother(): Promise<string> {
  const [first, second] = [
    await openPage(world.baseUrl, world.client),
    await openPage(world.baseUrl, world.client),
  ];
  const socket = await openSocket();
  opened.push(socket);
  socket.write(eventsRequest(first) + eventsRequest(second));
  await readUntil(socket, /"waiting"/);
  // The ninth stream of the first login ends the one on the socket; then the other answer gets its turn.
  for (let more = 0; more < 8; more += 1) await openStream(first);
  const text = await readUntil(socket, /HTTP[^]*(?:"waiting"|needs a connection of its own)/);
  return text.slice(text.indexOf("HTTP"));
}

const opened: Socket[] = [];
after(() => opened.forEach((socket) => socket.destroy()));

async function openStream(page: OpenPage): Promise<Socket> {
  const socket = await openSocket();
  opened.push(socket);
  socket.write(eventsRequest(page));
  await readUntil(socket, /"waiting"/);
  return socket;
}

test("a page that asks by long poll is told of a second wallet as soon as it tries", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const poll = async (known: string): Promise<unknown> => {
    const url = `${world.baseUrl}/oauth2/login/${page.loginId}/status?after=${known}`;
    // Less than the 25 s after which a poll ends without news.
    const response = await page.jar.fetch(url, { signal: AbortSignal.timeout(20_000) });
    return response.json();
  };
  const waiting = poll("claimed");
  await tryClaim(scan(page.qr), newIdentity());
  const told = await waiting;
  assert.deepEqual(told, await statusOf(world.baseUrl, page));
  assert.equal((told as { contested: boolean }).contested, true);
  assert.deepEqual(await poll("claimed"), told, "also a poll that comes between");
  const last = poll("contested");
  await decline(claimed);
  assert.equal(((await last) as { kind: string }).kind, "failed");
});

test("whoever asks for a login without its cookie ends no stream of its page, however often", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const own = await openStream(page);
  const stranger = await openSocket();
  const ask = `GET /oauth2/login/${page.loginId}/status?after=waiting HTTP/1.1\r\nHost: localhost\r\n`;
  // Pipelined over one connection.
  stranger.write(`${`${ask}\r\n`.repeat(20)}${ask}Connection: close\r\n\r\n`);
  const answers = await readUntil(stranger, /^$/);
  assert.equal(answers.split("HTTP/1.1 404").length, 22);
  await claim(scan(page.qr), newIdentity());
  assert.match(await readUntil(own, /"claimed"|0\r\n\r\n/), /"claimed"/);
});

test("an idle stream says within 15 s that it lives and what time it is, and at once when that is moved", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  await using own = await openWorld();
  const page = await openPage(own.baseUrl, own.client);
  const stream = await page.jar.fetch(`${own.baseUrl}/oauth2/login/${page.loginId}/events`);
  assert.equal(stream.headers.get("x-content-type-options"), "nosniff");
  // A proxy that compresses what it passes on would hold each event back until the next one.
  assert.equal(stream.headers.get("cache-control"), "no-store, no-transform");
  const chunks = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.match((await chunks?.read())?.value ?? "", /"waiting"/);
  const assertTold = async (): Promise<void> => {
    const told = /^event: alive\ndata: (\d+)\n\n$/.exec((await chunks?.read())?.value ?? "");
    assert.ok(Math.abs(Number(told?.[1]) - own.ctx.clock.nowMs()) < 5000, told?.[1]);
  };
  using _ = own.holdTime();
  t.mock.timers.tick(15_000);
  await assertTold();
  await own.advance(60);
  await assertTold();
  await own.advance(own.ctx.config.loginLifetimeSeconds);
  assert.equal((await chunks?.read())?.done, true, "no longer than its login");
});

test("what the service says of a login when it is asked brings its time along", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await world.advance(3);
  using _ = world.holdTime();
  const asked = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/status`);
  const nowMs = Number(asked.headers.get("svc-now-ms"));
  assert.ok(Math.abs(nowMs - world.ctx.clock.nowMs()) < 2000, `${nowMs}`);
});

test("the ninth stream of a login ends its first, and the others go on", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const first = await openStream(page);
  const others: Socket[] = [];
  for (let more = 0; more < 8; more += 1) others.push(await openStream(page));
  assert.match(await readUntil(first, /0\r\n\r\n/), /0\r\n\r\n/);
  await claim(scan(page.qr), newIdentity());
  for (const other of others) assert.match(await readUntil(other, /"claimed"/), /"digits":"\d\d"/);
});

test("the ninth long poll of a login ends its first, and the others go on", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}/status?after=waiting`;
  const told: number[] = [];
  const polls = Array.from({ length: 9 }, async (_, at) => {
    // Less than the 25 s after which a poll ends without news.
    const response = await page.jar.fetch(url, { signal: AbortSignal.timeout(20_000) });
    told.push(at);
    return ((await response.json()) as { kind: string }).kind;
  });
  assert.equal(await Promise.race(polls), "waiting");
  assert.equal(told.length, 1);
  await claim(scan(page.qr), newIdentity());
  const kinds = (await Promise.all(polls)).toSorted();
  assert.deepEqual(kinds, [...Array.from({ length: 8 }, () => "claimed"), "waiting"]);
});

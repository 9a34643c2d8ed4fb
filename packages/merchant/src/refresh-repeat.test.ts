import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import {
  clientId,
  clientSecret,
  openFakeIssuer,
  subject,
  type FakeIssuer,
} from "../test/fake-issuer.ts";
import { openMerchant, type Login } from "./index.ts";

const redirectUri = "http://localhost:4001/callback";
/** The broker's grace (decisions, section 2, Refresh). */
const graceMs = 10_000;

let fake: FakeIssuer;
let login: Login;
const lost = new Error("the connection broke");

before(async () => {
  fake = await openFakeIssuer();
});
after(() => fake[Symbol.asyncDispose]());
beforeEach(async () => {
  fake.tokenAnswers = [];
  fake.tokenRefusal = undefined;
  const { start, finish } = open();
  const { url, ...pending } = await start();
  login = await finish(await visit(url), pending);
  fake.calls.length = 0;
});

const open = (send: typeof fetch = fetch) =>
  openMerchant({
    issuer: fake.url,
    clientId,
    clientSecret,
    redirectUri,
    fetch: send,
    now: () => fake.now,
  }).login;

async function visit(url: string): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return response.headers.get("location") ?? "";
}

const isToken = (url: Parameters<typeof fetch>[0]) =>
  new URL(url instanceof Request ? url.url : url).pathname === "/oauth2/token";

/** The broker answers the first try, and `lose` turns that answer into what arrives. The second try gets it unchanged. */
function losing(lose: (response: Response) => Promise<Response>): typeof fetch {
  let answer: Response | undefined;
  return async (url, init) => {
    if (!isToken(url)) return fetch(url, init);
    if (answer !== undefined) {
      fake.calls.push({ path: "/oauth2/token", form: init?.body as URLSearchParams });
      return answer;
    }
    answer = await fetch(url, init);
    return lose(answer.clone());
  };
}

const brokenOff = () =>
  new Response(
    new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode('{"access_'));
        controller.error(lost);
      },
    }),
  );

const unavailable = (retryAfter: string) =>
  Response.json(
    { error: "temporarily_unavailable" },
    { status: 503, headers: { "retry-after": retryAfter } },
  );

const losses: Record<string, () => Promise<Response>> = {
  "does not come": async () => Promise.reject(lost),
  "breaks off": async () => brokenOff(),
  "does not reach a gateway": async () => new Response("<html>", { status: 502 }),
  "comes too late for a gateway": async () => new Response("<html>", { status: 504 }),
  "is that the broker's database gave none": async () => unavailable("0"),
};
for (const [how, lose] of Object.entries(losses)) {
  test(`a refresh whose answer ${how} is made once more with the same token`, async () => {
    const { refreshToken = "" } = login;
    const fresh = await open(losing(lose)).refresh(refreshToken, { subject });
    assert.ok(fake.refreshTokens.has(fresh.refreshToken ?? ""));
    const tries = fake.calls.filter(({ path }) => path === "/oauth2/token");
    assert.deepEqual(
      tries.map(({ form }) => form.get("refresh_token")),
      [refreshToken, refreshToken],
    );
  });
}

test("a gateway that gets no answer to either try of a refresh is a broker that is away", async () => {
  const answers = [502, 502, 200];
  const down: typeof fetch = async (url, init) =>
    isToken(url) ? new Response("<html>", { status: answers.shift() ?? 200 }) : fetch(url, init);
  const refused = open(down).refresh(login.refreshToken ?? "", { subject });
  await assert.rejects(refused, { code: "issuer_unreachable" });
  assert.deepEqual(answers, [200]);
});

test("both tries of a refresh end within the broker's grace, and there is no third", async (context) => {
  const { refreshToken = "" } = login;
  const timeout = context.mock.method(AbortSignal, "timeout");
  const waits: unknown[] = [];
  const hanging: typeof fetch = async (url, init) => {
    if (!isToken(url)) return fetch(url, init);
    const last = timeout.mock.calls.at(-1);
    assert.equal(last?.result, init?.signal);
    waits.push(last?.arguments[0]);
    throw new DOMException("late", "TimeoutError");
  };
  const refused = open(hanging).refresh(refreshToken, { subject });
  await assert.rejects(refused, { code: "issuer_unreachable" });
  assert.equal(waits.length, 2);
  assert.ok(Number(waits[0]) + Number(waits[1]) < graceMs, String(waits));
});

test("a refresh that fails only when the grace may be over is not made again: its token would count as stolen", async (context) => {
  const { refreshToken = "" } = login;
  const beganMs = Date.now();
  for (const [afterMs, tries] of [
    [4_999, 2],
    [5_000, 1],
    [60_000, 1],
  ] as const) {
    let sent = 0;
    const { mock } = context.mock.method(Date, "now", () => beganMs + sent * afterMs);
    const heedless: typeof fetch = async (url, init) => {
      if (!isToken(url)) return fetch(url, init);
      sent += 1;
      throw lost;
    };
    const refused = open(heedless).refresh(refreshToken, { subject });
    await assert.rejects(refused, { code: "issuer_unreachable" });
    assert.equal(sent, tries, String(afterMs));
    mock.restore();
  }
});

test("a refresh waits as long as the broker says before it is made again, within the grace or not at all", async (context) => {
  const { refreshToken = "" } = login;
  const beganMs = Date.now();
  for (const [retryAfter, tries, endMs] of [
    ["1", 2, 1000],
    ["4", 1, 5001],
    ["5", 1, 0],
  ] as const) {
    let [waitedMs, sent] = [0, 0];
    context.mock.method(Date, "now", () => beganMs + waitedMs);
    const away: typeof fetch = async (url, init) => {
      if (!isToken(url)) return fetch(url, init);
      sent += 1;
      const { mock } = context.mock.method(globalThis, "setTimeout", (then: () => void, ms = 0) => {
        mock.restore();
        // The machine sleeps on the way, where the wait ends with the grace.
        waitedMs += ms === 4000 ? 1001 + ms : ms;
        then();
      });
      return unavailable(retryAfter);
    };
    const refused = open(away).refresh(refreshToken, { subject });
    await assert.rejects(refused, { code: "issuer_unreachable" });
    context.mock.restoreAll();
    assert.deepEqual([sent, waitedMs], [tries, endMs], retryAfter);
  }
});

test("a refresh that was answered is not made again, nor is a code redeemed again", async () => {
  const { refreshToken = "" } = login;
  const { refresh, start, finish } = open();
  for (const status of [400, 401, 403, 500]) {
    fake.tokenAnswers.push({ status, body: '{"error":"temporarily_unavailable"}' });
    await assert.rejects(refresh(refreshToken, { subject }));
  }
  fake.tokenRefusal = { status: 429 };
  await assert.rejects(refresh(refreshToken, { subject }), { code: "rate_limited" });
  assert.equal(fake.countOf("/oauth2/token"), 5);
  fake.tokenRefusal = undefined;
  const { url, ...pending } = await start();
  const callback = await visit(url);
  fake.calls.length = 0;
  const own = open(losing(async () => Promise.reject(lost)));
  await assert.rejects(own.finish(callback, pending), { code: "issuer_unreachable" });
  assert.equal(fake.countOf("/oauth2/token"), 1);
  await assert.rejects(finish(callback, pending), { code: "grant_refused" });
});

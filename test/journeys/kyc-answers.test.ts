// What merchants are answered on every KYC route, in every status of an order, and where they are refused: rows of the
// service document that need settlement to stand still, or callers from elsewhere.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createApiKey, createDomain } from "../../service/src/accounts/index.ts";
import { getBuiltInIssuer, revokeCredential } from "../../service/src/credentials/index.ts";
import { openGates, type CrashPoint, type Gates } from "../crash-gates.ts";
import { promisedBy } from "../document-rows.ts";
import { openReceiver } from "../kyb-receiver.ts";
import {
  approve,
  decline,
  type KycWorld,
  openKycWorld,
  openRequest,
  shareResult,
} from "../kyc-world.ts";
import { openRawConnection } from "../raw-connection.ts";

const windowSeconds = 600;
const readsPerSecond = 2;
const createsPerSecond = 1;
const burstSeconds = 4;
/** A test's chain confirms an order before a test can see it confirming; this holds it once the confirm is signed. */
const confirming: CrashPoint = {
  name: "the confirm is signed",
  on: "update on chain_transaction",
  when: "new.status = 'sent' and old.status = 'queued' and new.kind = 'kyc.confirm'",
  isSeen: true,
};
let world: KycWorld;
let gates: Gates;
before(async () => {
  world = await openKycWorld({
    // So long that orders stay where they are until a test moves the time.
    SETTLEMENT_WINDOW_SECONDS: String(windowSeconds),
    // Rate limits exempt loopback: as a trusted proxy, the test names other addresses.
    TRUSTED_PROXIES: "127.0.0.0/8,::1",
    LIMIT_READS_PER_SECOND: String(readsPerSecond),
    LIMIT_CREATES_PER_SECOND: String(createsPerSecond),
  });
  const given = { points: [confirming], processName: "none" };
  gates = await openGates(world.ctx.config.databaseUrl ?? "", given);
});
after(async () => {
  await gates[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const kyc = "/api/v2/kyc";
const message = (answer: { body: { message?: string } }): string | undefined => answer.body.message;

test("an approval that is sent twice is answered the same, also where the first comes slowly and last", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const { connection, ...opened } = await openRequest(asked.body.data?.["link"]);
  const body = JSON.stringify(shareResult(person, { connection, ...opened }));
  const { host, pathname } = new URL(connection);
  const slow = await openRawConnection(world.baseUrl);
  const head = [`Host: ${host}`, "Content-Type: application/json", "Connection: close"];
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  slow.send(`POST ${pathname} HTTP/1.1\r\n${[...head, length].join("\r\n")}\r\n\r\n{`);
  // Once these are answered, the slow call has surely begun.
  for (let at = 0; at < 5; at += 1) await world.statusOf(opened.id);
  const headers = { "content-type": "application/json" };
  const quick = async () => fetch(connection, { method: "POST", headers, body });
  const answer = await (await quick()).text();
  assert.match(answer, /INITIATING/);
  slow.send(body.slice(1));
  const answered = await slow.all;
  assert.match(answered, /^HTTP\/1.1 200 /);
  assert.ok(answered.includes(answer), answered);
  assert.equal(await (await quick()).text(), answer);
});

test("200 verified and valid: the answers over HTTP have the literal messages", async () => {
  const { address, held } = world.person;
  const path = `/api/v1/blockchain/verified?user=${address}`;
  const both = await world.call("GET", `${path}&items=EMAIL&items=PASSPORT_NAME`);
  assert.equal(message(both), "Items were successfully checked.");
  const lists = { verifiedItems: ["EMAIL"], unVerifiedItems: ["PASSPORT_NAME"] };
  assert.deepEqual(both.body.data, lists);
  const one = await world.call("GET", `${path}&items=EMAIL`);
  assert.deepEqual(one.body.data, { verifiedItems: ["EMAIL"] });
  const none = await world.call("GET", `${path}&items=PASSPORT_NAME`);
  assert.deepEqual(none.body.data, { unVerifiedItems: ["PASSPORT_NAME"] });
  const infos = held
    .filter(({ field }) => field === "EMAIL")
    .map(({ field, data, pepper }) => ({ field, data, pepper: pepper.slice(2) }));
  const valid = await world.call("POST", "/api/v1/blockchain/valid", {
    body: { user: address, infos },
  });
  assert.equal(message(valid), "user was successfully checked.");
  assert.deepEqual(valid.body.data, { valids: ["EMAIL"] });
});

test("200: a fixed package asks for its own fields, a dynamic one for those that are named", async () => {
  const person = await world.verify();
  const { sourceKey } = await world.buy({ fields: ["EMAIL", "IDCARD_DOB"] });
  const given = { user: person.address, sourceKey, fields: undefined };
  const { claims } = await openRequest((await world.ask(given)).body.data?.["link"]);
  assert.deepEqual(claims["required"], ["EMAIL", "IDCARD_DOB"]);
  for (const changed of [{ fields: ["EMAIL"] }, { optionalFields: ["EMAIL"] }]) {
    const { status, body } = await world.ask({ ...given, ...changed });
    const refusal = "sourcekey does not support dynamic fields";
    assert.deepEqual([status, body.error?.message], [400, refusal]);
  }
  const none = await world.ask({ user: person.address, fields: undefined });
  assert.deepEqual([none.status, none.body.error?.message], [400, "no fields provided"]);
  const optional = { user: person.address, fields: undefined, optionalFields: ["EMAIL"] };
  assert.equal((await world.ask(optional)).status, 200);
});

test("200: statusCallback and withoutQRCode change nothing, whatever they hold", async () => {
  const person = await world.verify();
  const ask = async (more: object) => world.ask({ user: person.address, ...more });
  const plain = await ask({});
  for (const value of ["https://elsewhere.example/", true, 7, null, {}, "not a URL"]) {
    const { status, body } = await ask({ statusCallback: value, withoutQRCode: value });
    assert.equal(status, 200);
    const { qrcode, link, universalLink, alreadySent, expiration, ...rest } = body.data ?? {};
    assert.ok(alreadySent === true && typeof qrcode === "string" && typeof expiration === "number");
    assert.ok(typeof link === "string" && typeof universalLink === "string");
    assert.deepEqual(rest, { referenceKey: plain.body.data?.["referenceKey"] });
    assert.equal((await openRequest(link)).claims["callback_host"], "localhost:4998");
  }
});

test("an order shows its hashes once they exist, and a failureReason where it FAILED alone", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const query = `referenceKey=${referenceKey}`;
  const membersNow = async () => {
    const now = await world.call("GET", `${kyc}/status?${query}`);
    assert.equal(message(now), "status has been sent successfully");
    const all = await world.call("GET", `${kyc}/all-statuses?${query}`);
    assert.equal(message(all), "all statuses has sent successfully");
    const entries = (all.body.data?.["allStatuses"] ?? []) as Record<string, unknown>[];
    assert.deepEqual(entries.at(-1), now.body.data);
    return Object.keys(now.body.data ?? {});
  };
  assert.deepEqual(await membersNow(), ["status", "createdAt"]);
  assert.equal((await approve(person, asked.body.data?.["link"])).status, 200);
  assert.deepEqual(await membersNow(), ["status", "createdAt"]);
  await gates.close(confirming);
  await world.advance(windowSeconds + 1);
  await world.reach(referenceKey, "CONFIRMING");
  assert.deepEqual(await membersNow(), ["status", "createdAt", "initiatedTxHash"]);
  await gates.open(confirming);
  await world.advance(windowSeconds + 1);
  await world.reach(referenceKey, "CONFIRMED");
  const settled = ["status", "createdAt", "initiatedTxHash", "confirmTxHash"];
  assert.deepEqual(await membersNow(), settled);
  const again = await world.ask({ user: person.address });
  assert.deepEqual(await membersNow(), ["status", "createdAt"]);
  assert.equal((await decline(person, again.body.data?.["link"])).status, 200);
  assert.deepEqual(await membersNow(), ["status", "createdAt", "failureReason"]);
});

test("200: a waiting order is cancelled, and its transfer is free again", async () => {
  const { sourceKey } = await world.buy({ transfers: 1 });
  const asked = await world.ask({ sourceKey });
  const referenceKey = asked.body.data?.["referenceKey"];
  const exhausted = await world.ask({ sourceKey, fields: ["EMAIL"] });
  assert.deepEqual(
    [exhausted.status, exhausted.body.error?.message],
    [402, "package is exhausted"],
  );
  const cancelled = await world.call("POST", "/api/v2/kyc/cancel", { body: { referenceKey } });
  assert.equal(cancelled.status, 200);
  assert.equal(cancelled.body.data?.["failureReason"], "CANCELLED");
  const again = await world.call("POST", "/api/v2/kyc/cancel", { body: { referenceKey } });
  assert.deepEqual([again.status, again.body.error?.message], [422, "order can not be cancelled"]);
  assert.equal((await world.ask({ sourceKey, fields: ["EMAIL"] })).status, 200);
});

test("422: an order that is INITIATING or CONFIRMING is ongoing, and is neither asked for again nor cancelled", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  assert.equal((await approve(person, asked.body.data?.["link"])).status, 200);
  await gates.close(confirming);
  for (const status of ["INITIATING", "CONFIRMING"]) {
    await world.reach(referenceKey, status);
    const again = await world.ask({ user: person.address });
    const refusal = "there is already an ongoing request";
    assert.deepEqual([again.status, again.body.error?.message], [422, refusal], status);
    const cancelled = await world.call("POST", `${kyc}/cancel`, { body: { referenceKey } });
    const refused = "order can not be cancelled";
    assert.deepEqual([cancelled.status, cancelled.body.error?.message], [422, refused], status);
    const other = await world.ask({ user: person.address, fields: ["EMAIL"] });
    assert.equal(other.status, 200, "another order of the same user is none of this one");
    await world.advance(windowSeconds + 1);
  }
  await gates.open(confirming);
  await world.reach(referenceKey, "CONFIRMED");
  assert.equal((await world.ask({ user: person.address })).status, 200);
});

test("422: an order is refused as ongoing before fields of it that are no longer verified", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  assert.equal((await approve(person, asked.body.data?.["link"])).status, 200);
  const { credentialId = "" } = person.held.find(({ field }) => field === "EMAIL") ?? {};
  await revokeCredential(
    world.ctx,
    await getBuiltInIssuer(world.ctx, "demo", "live"),
    credentialId,
  );
  const again = await world.ask({ user: person.address });
  assert.deepEqual([again.status, again.body.error?.reason], [422, "order_ongoing"]);
  const other = await world.ask({ user: person.address, fields: ["EMAIL"] });
  assert.deepEqual([other.status, other.body.error?.reason], [422, "unverified_fields"]);
});

test("an order that was opened is still PENDING, and nothing is announced", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  await openRequest(asked.body.data?.["link"]);
  await openRequest(asked.body.data?.["link"]);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
  const { body } = await world.call("GET", `${kyc}/events?referenceKey=${referenceKey}`);
  assert.equal((body.data?.["items"] as unknown[] | undefined)?.length, 1);
});

test("200: events are read after a sequence, and sent again one by one or all", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  assert.equal((await decline(person, asked.body.data?.["link"])).status, 200);
  const read = async (sequence: number) => {
    const path = `${kyc}/events?referenceKey=${referenceKey}&after=${sequence}`;
    const { body } = await world.call("GET", path);
    return body.data?.["items"] as { eventId: string; sequence: number; event: string }[];
  };
  const all = await read(0);
  assert.deepEqual(
    all.map(({ sequence, event }) => [sequence, event]),
    [
      [1, "status.updated"],
      [2, "status.updated"],
    ],
  );
  assert.deepEqual(
    (await read(1)).map(({ sequence }) => sequence),
    [2],
  );
  const again = async (more: object) =>
    (await world.call("POST", `${kyc}/redeliver`, { body: { referenceKey, ...more } })).status;
  assert.deepEqual([await again({}), await again({ eventId: all[1]?.eventId })], [200, 200]);
});

test("200: after a repeat with another callback, what the earlier one did not take is delivered there", async () => {
  const person = await world.verify();
  await using receiver = await openReceiver();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const events = await world.call("GET", `${kyc}/events?referenceKey=${referenceKey}`);
  const [event] = (events.body.data?.["items"] ?? []) as { eventId: string; body: string }[];
  assert.ok(event);
  const again = await world.ask({ user: person.address, callback: receiver.url });
  assert.equal(again.body.data?.["alreadySent"], true);
  const { body } = await receiver.arrivalOf(event.eventId);
  assert.equal(body, event.body);
});

test("200: after the next attempt with another callback, what the earlier one did not take is delivered there", async () => {
  const person = await world.verify();
  await using receiver = await openReceiver();
  const asked = await world.ask({ user: person.address });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  assert.equal((await decline(person, asked.body.data?.["link"])).status, 200);
  assert.equal((await world.ask({ user: person.address, callback: receiver.url })).status, 200);
  const events = await world.call("GET", `${kyc}/events?referenceKey=${referenceKey}`);
  const items = (events.body.data?.["items"] ?? []) as { eventId: string; sequence: number }[];
  assert.deepEqual(
    items.map(({ sequence }) => sequence),
    [1, 2, 3],
  );
  for (const { eventId } of items) await receiver.arrivalOf(eventId);
});

test("400: every required member of a request is required", async () => {
  for (const name of ["user", "sourceKey", "callback", "expiration"]) {
    const { status, body } = await world.ask({ [name]: undefined });
    assert.equal(status, 400, name);
    assert.match(body.error?.message ?? "", /^Invalid Request: ./, name);
  }
});

test("400: every name that is no KYC field is told, of both lists", async () => {
  const names = { fields: ["EMAIL", "SHOE_SIZE"], optionalFields: ["email", "", "IDCARD_DOB"] };
  const { status, body } = await world.ask(names);
  assert.equal(status, 400);
  const [, listed = ""] =
    /^user fields \((.*)\) are invalid fields$/.exec(body.error?.message ?? "") ?? [];
  assert.equal(body.error?.reason, "invalid_fields");
  assert.deepEqual(listed.split(/, ?/).toSorted(), ['""', "SHOE_SIZE", "email"]);
});

test("404: an order that is not there is not found, on every route that takes one", async () => {
  for (const refusal of await askEveryRoute("0".repeat(64), world.apiKey))
    assert.deepEqual(refusal, [404, "order not found"]);
});

/** The refusals of an order by every route that takes one. */
async function askEveryRoute(referenceKey: string, apiKey: string) {
  const answers = await Promise.all([
    ...["status", "all-statuses", "events", "receipt"].map(async (path) =>
      world.call("GET", `${kyc}/${path}?referenceKey=${referenceKey}`, { apiKey }),
    ),
    ...["cancel", "redeliver"].map(async (path) =>
      world.call("POST", `${kyc}/${path}`, { apiKey, body: { referenceKey } }),
    ),
  ]);
  return answers.map(({ status, body }) => [status, body.error?.message]);
}

test("404: an order of another domain is not found, on every route that takes one, nor in a list", async () => {
  const person = await world.verify();
  const { body } = await world.ask({ user: person.address });
  assert.equal((await approve(person, body.data?.["link"])).status, 200);
  const referenceKey = String(body.data?.["referenceKey"]);
  const other = await keyOfOtherDomain();
  for (const refusal of await askEveryRoute(referenceKey, other))
    assert.deepEqual(refusal, [404, "order not found"]);
  for (const query of [`user=${person.address}`, "status=INITIATING", ""]) {
    const listed = async (apiKey: string) =>
      (await world.call("GET", `${kyc}/orders?${query}`, { apiKey })).body.data;
    assert.deepEqual(await listed(other), { items: [] }, query);
    assert.notDeepEqual(await listed(world.apiKey), { items: [] }, query);
  }
});

async function keyOfOtherDomain(): Promise<string> {
  const { ctx, organizationId } = world;
  const given = { organizationId, domain: "localhost:4997", environment: "live" };
  const { id: clientDomainId } = await createDomain(ctx, given, "test");
  return (await createApiKey(ctx, { clientDomainId, name: "Other" }, "test")).key;
}

test("404: a receipt before the first transaction is not found, nor is an event that never was", async () => {
  const person = await world.verify();
  const { body } = await world.ask({ user: person.address });
  const referenceKey = String(body.data?.["referenceKey"]);
  const receipt = await world.call("GET", `${kyc}/receipt?referenceKey=${referenceKey}`);
  assert.deepEqual([receipt.status, receipt.body.error?.reason], [404, "receipt_not_found"]);
  const eventId = "evt_01HZZZZZZZZZZZZZZZZZZZZZZZ";
  const event = await world.call("POST", `${kyc}/redeliver`, { body: { referenceKey, eventId } });
  assert.deepEqual([event.status, event.body.error?.reason], [404, "event_not_found"]);
});

/** Calls a route that has to refuse. @returns the status, and the reason in the envelope */
async function refusalOf(route: string, init: RequestInit): Promise<[number, unknown]> {
  const [method = "", path = ""] = route.split(" ");
  const answer = await fetch(`${world.baseUrl}${path}`, { method, ...init });
  const body = (await answer.json()) as {
    success: boolean;
    error: { code: number; reason: string };
  };
  assert.equal(body.success, false, route);
  assert.equal(body.error.code, answer.status, route);
  return [answer.status, body.error.reason];
}

test("401, 405, 413, 415: every route refuses in the envelope", async () => {
  const { apiKey } = world;
  const { routes } = promisedBy("Verified fields", () => true);
  for (const route of routes) {
    const [method = "", path = ""] = route.split(" ");
    const isPost = method === "POST";
    const json = isPost ? { "content-type": "application/json" } : undefined;
    const as = async (authorization: string | null, changed: RequestInit = {}) =>
      refusalOf(route, {
        headers: { ...json, ...(authorization === null ? {} : { authorization }) },
        ...(isPost ? { body: "{}" } : {}),
        ...changed,
      });
    assert.deepEqual(await as(null), [401, "apikey_missing"], route);
    for (const wrong of [
      `Bearer ${apiKey}`,
      `${apiKey}x`,
      apiKey.replace("live", "test"),
      "Basic eDp5",
    ])
      assert.deepEqual(await as(wrong), [401, "apikey_invalid"], `${route} ${wrong}`);
    const other = await fetch(`${world.baseUrl}${path}`, {
      method: isPost ? "GET" : "POST",
      headers: { authorization: apiKey, "content-type": "application/json" },
      ...(isPost ? {} : { body: "{}" }),
    });
    const { success } = (await other.json()) as { success: boolean };
    const refused = [other.status, other.headers.get("allow")?.includes(method), success];
    assert.deepEqual(refused, [405, true, false], route);
    if (!isPost) continue;
    assert.deepEqual(await as(apiKey, { body: "{" }), [400, "malformed_request"], route);
    const form = { authorization: apiKey, "content-type": "application/x-www-form-urlencoded" };
    assert.deepEqual(await as(apiKey, { headers: form, body: "a=b" }), [
      415,
      "unsupported_media_type",
    ]);
    const size = path.endsWith("/valid") ? 8 * 1024 * 1024 : 64 * 1024;
    const large = JSON.stringify({ padding: "x".repeat(size) });
    assert.deepEqual(await as(apiKey, { body: large }), [413, "body_too_large"], route);
  }
});

test("200: no cache keeps what a key is answered, on every route", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  assert.equal((await approve(person, asked.body.data?.["link"])).status, 200);
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  await world.advance(windowSeconds + 1);
  await world.reach(referenceKey, "CONFIRMED");
  const [user, other] = [person.address, await world.verify()];
  const waiting = await world.ask({ user: other.address });
  const read = (path: string, query: string) => world.call("GET", `${path}?${query}`);
  const order = `referenceKey=${referenceKey}`;
  const infos = person.held.map(({ field, data, pepper }) => ({ field, data, pepper }));
  const answers = {
    "GET /api/v1/blockchain/verified": read(
      "/api/v1/blockchain/verified",
      `user=${user}&items=EMAIL`,
    ),
    "GET /api/v1/blockchain/proof": read("/api/v1/blockchain/proof", `user=${user}&items=EMAIL`),
    "POST /api/v1/blockchain/valid": world.call("POST", "/api/v1/blockchain/valid", {
      body: { user, infos },
    }),
    "POST /api/v2/kyc/qrcode": world.ask({ user, fields: ["ADDRESS_CITY"] }),
    "POST /api/v2/kyc/cancel": world.call("POST", `${kyc}/cancel`, {
      body: { referenceKey: waiting.body.data?.["referenceKey"] },
    }),
    "POST /api/v2/kyc/redeliver": world.call("POST", `${kyc}/redeliver`, {
      body: { referenceKey },
    }),
    "GET /api/v2/kyc/orders": read(`${kyc}/orders`, ""),
    "GET /api/v2/kyc/status": read(`${kyc}/status`, order),
    "GET /api/v2/kyc/all-statuses": read(`${kyc}/all-statuses`, order),
    "GET /api/v2/kyc/events": read(`${kyc}/events`, order),
    "GET /api/v2/kyc/deliveries": read(`${kyc}/deliveries`, order),
    "GET /api/v2/kyc/receipt": read(`${kyc}/receipt`, order),
  };
  const { routes } = promisedBy("Verified fields", () => true);
  assert.deepEqual(Object.keys(answers).toSorted(), routes.toSorted());
  for (const [route, answer] of Object.entries(answers)) {
    const { status, headers } = await answer;
    assert.deepEqual([status, headers.get("cache-control")], [200, "no-store"], route);
  }
});

test("429: a key reads and creates so often in a second, and is told when to come back", async () => {
  const headers = {
    authorization: world.apiKey,
    "content-type": "application/json",
    // An address of its own, so that these calls use up no other test's limits.
    "x-forwarded-for": "203.0.113.7",
  };
  const send = {
    read: async () => fetch(`${world.baseUrl}${kyc}/orders`, { headers }),
    create: async () =>
      fetch(`${world.baseUrl}${kyc}/qrcode`, { method: "POST", headers, body: "{}" }),
  };
  for (const [name, perSecond] of [
    ["read", readsPerSecond],
    ["create", createsPerSecond],
  ] as const) {
    const answers: Response[] = [];
    const burst = perSecond * burstSeconds;
    while (answers.at(-1)?.status !== 429) {
      assert.ok(answers.length < 20 * burst, `${name}: no limit`);
      answers.push(await send[name]());
    }
    assert.ok(answers.length > burst, `${name}: ${answers.length}`);
    const last = answers.at(-1);
    assert.ok(last);
    assert.match(last.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    assert.match(last.headers.get("ratelimit") ?? "", /r=0/);
    const { error } = (await last.json()) as { error: { code: number; reason: string } };
    assert.deepEqual([error.code, error.reason], [429, "rate_limited"]);
  }
});

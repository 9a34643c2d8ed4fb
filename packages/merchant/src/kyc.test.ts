import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";

import { alice, referenceKey, statusBody } from "../test/signed-webhook.ts";
import { MerchantError, openKyc, type Kyc } from "./index.ts";

const apiKey = "svc_live_01J_secretsecret";
const hash = `0x${"11".repeat(32)}` as const;

interface Call {
  method: string | undefined;
  path: string;
  query: [string, string][];
  authorization: string | undefined;
  body: unknown;
}

interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body: string;
}

const calls: Call[] = [];
let answer: Answer | "hang" = { body: "" };

const server = createServer((request, response) => {
  void (async () => {
    const url = new URL(request.url ?? "", "http://localhost");
    const body = await text(request);
    calls.push({
      method: request.method,
      path: url.pathname,
      query: [...url.searchParams],
      authorization: request.headers.authorization,
      body: body === "" ? undefined : JSON.parse(body),
    });
    if (answer === "hang") return;
    response.writeHead(answer.status ?? 200, answer.headers).end(answer.body);
  })();
});
let issuer = "";
let kyc: Kyc;

before(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  kyc = openKyc({ issuer, apiKey });
});
after(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  calls.length = 0;
});

function succeed(data: unknown): void {
  answer = { body: JSON.stringify({ data, message: "done", success: true }) };
}

function refuse(status: number, error: object, headers: Record<string, string> = {}): void {
  answer = { status, headers, body: JSON.stringify({ success: false, error }) };
}

const only = (): Call => {
  assert.equal(calls.length, 1);
  assert.ok(calls[0] !== undefined);
  assert.equal(calls[0].authorization, apiKey, "the key goes without Bearer");
  return calls[0];
};

test("verified asks once per name, and an omitted list is an empty one", async () => {
  succeed({ verifiedItems: ["EMAIL"] });
  assert.deepEqual(await kyc.verified({ user: alice, items: ["EMAIL", "IDCARD_DOB"] }), {
    verified: ["EMAIL"],
    unverified: [],
  });
  const { method, path, query } = only();
  assert.equal(`${method} ${path}`, "GET /api/v1/blockchain/verified");
  assert.deepEqual(query, [
    ["user", alice],
    ["items", "EMAIL"],
    ["items", "IDCARD_DOB"],
  ]);
});

test("requestData posts what it was given and knows a repeat", async () => {
  const data = { qrcode: "aGk=", link: "svc:request/x", expiration: 1_800_000_600, referenceKey };
  succeed(data);
  const request = {
    user: alice,
    sourceKey: "sk",
    callback: "https://shop.example/webhooks/kyc",
    expiration: 1_800_000_600,
    fields: ["EMAIL"],
    optionalFields: ["ADDRESS_CITY"],
    reference: "order 7",
    purpose: "your age",
    returnUrl: "https://shop.example/verify",
  };
  assert.deepEqual(await kyc.requestData(request), { ...data, alreadySent: false });
  const { method, path, body } = only();
  assert.equal(`${method} ${path}`, "POST /api/v2/kyc/qrcode");
  assert.deepEqual(body, request);
  succeed({ ...data, universalLink: "https://wallet.example/l#svc", alreadySent: true });
  const repeat = await kyc.requestData(request);
  assert.equal(repeat.alreadySent, true);
  assert.equal(repeat.universalLink, "https://wallet.example/l#svc");
  succeed({ ...data, alreadySent: false });
  assert.equal((await kyc.requestData(request)).alreadySent, false);
});

test("a link of another scheme never becomes a button", async () => {
  succeed({ qrcode: "aGk=", link: "javascript:alert(1)", expiration: 1, referenceKey });
  const request = { user: alice, sourceKey: "sk", callback: "https://s.example", expiration: 1 };
  await assert.rejects(kyc.requestData(request), { code: "response_invalid", reason: "link" });
  for (const universalLink of ["javascript:alert(1)//", "data:text/html,x", "//wallet.example"]) {
    succeed({ qrcode: "aGk=", link: "svc:request/x", universalLink, expiration: 1, referenceKey });
    const refusal = { code: "response_invalid", reason: "universalLink" };
    await assert.rejects(kyc.requestData(request), refusal, universalLink);
  }
});

test("status and allStatuses read the order's fields", async () => {
  const entry = { status: "INITIATED", createdAt: 5, initiatedTxHash: hash };
  succeed(entry);
  assert.deepEqual(await kyc.status(referenceKey), entry);
  assert.deepEqual(only().query, [["referenceKey", referenceKey]]);
  const failed = { status: "FAILED", createdAt: 6, failureReason: "USER_DECLINED" };
  succeed({ allStatuses: [entry, failed] });
  assert.deepEqual(await kyc.allStatuses(referenceKey), [entry, failed]);
  assert.equal(calls[1]?.path, "/api/v2/kyc/all-statuses");
});

test("cancel answers the status the order ended in", async () => {
  const ended = { status: "FAILED", createdAt: 6, failureReason: "CANCELLED" };
  succeed(ended);
  assert.deepEqual(await kyc.cancel(referenceKey), ended);
  const { method, path, body } = only();
  assert.equal(`${method} ${path}`, "POST /api/v2/kyc/cancel");
  assert.deepEqual(body, { referenceKey });
});

test("orders gives a page and the cursor of the next", async () => {
  const item = {
    referenceKey,
    attempt: 2,
    user: alice,
    fields: ["EMAIL"],
    expiration: 9,
    scannedAt: 8,
    status: "PENDING",
    createdAt: 7,
  };
  succeed({ items: [item], nextCursor: "c1" });
  const page = await kyc.orders({ status: "PENDING", user: alice, limit: 1, cursor: "c0" });
  assert.deepEqual(page, { items: [{ ...item, optionalFields: [] }], nextCursor: "c1" });
  assert.deepEqual(only().query, [
    ["status", "PENDING"],
    ["user", alice],
    ["limit", "1"],
    ["cursor", "c0"],
  ]);
  succeed({ items: [] });
  assert.deepEqual(await kyc.orders(), { items: [] });
  succeed({ items: [{ ...item, user: "alice" }] });
  await assert.rejects(kyc.orders(), { code: "response_invalid", reason: "user" });
});

test("events gives what was missed, ready to apply", async () => {
  const body = statusBody(4, "CONFIRMING");
  const row = { eventId: "evt_1", event: "status.updated", sequence: 4, createdAt: 1, attempts: 0 };
  const gone = { ...row, event: "data.transferred", sequence: 5, deliveredAt: 2, attempts: 1 };
  succeed({ items: [{ ...row, nextAttemptAt: 3, body }, gone] });
  const [first, second] = await kyc.events(referenceKey, { after: 3, limit: 2 });
  assert.deepEqual(only().query, [
    ["referenceKey", referenceKey],
    ["after", "3"],
    ["limit", "2"],
  ]);
  assert.equal(first?.content?.event === "status.updated" && first.content.status, "CONFIRMING");
  assert.deepEqual(second, gone);
});

test("deliveries tells how each attempt went", async () => {
  const row = { eventId: "evt_1", event: "status.updated", sequence: 4, at: 1 };
  const failed = { ...row, attempt: 1, outcome: "failed" };
  const refused = { ...row, attempt: 2, outcome: "refused", status: 503, durationMs: 12 };
  succeed({ items: [failed, refused] });
  const page = { after: 4, afterAttempt: 0, limit: 2 };
  assert.deepEqual(await kyc.deliveries(referenceKey, page), [failed, refused]);
  assert.deepEqual(only().query, [
    ["referenceKey", referenceKey],
    ["after", "4"],
    ["afterAttempt", "0"],
    ["limit", "2"],
  ]);
});

test("redeliver names an event, or all of an order", async () => {
  succeed({ count: 1 });
  assert.equal(await kyc.redeliver(referenceKey, "evt_1"), 1);
  assert.deepEqual(only().body, { referenceKey, eventId: "evt_1" });
  await kyc.redeliver(referenceKey);
  assert.deepEqual(calls[1]?.body, { referenceKey });
});

test("valid sends peppers as hex without 0x and tells why a field is not valid", async () => {
  succeed({ valids: ["EMAIL"], unValids: ["IDCARD_DOB"], reasons: { IDCARD_DOB: "EXPIRED" } });
  const infos = [{ field: "EMAIL", data: "a@example.com", pepper: hash }] as const;
  assert.deepEqual(await kyc.valid({ user: alice, infos }), {
    valid: ["EMAIL"],
    invalid: ["IDCARD_DOB"],
    reasons: { IDCARD_DOB: "EXPIRED" },
  });
  const triple = { field: "EMAIL", data: "a@example.com", pepper: "11".repeat(32) };
  assert.deepEqual(only().body, { user: alice, infos: [triple] });
  succeed({ reasons: { IDCARD_DOB: { toString: 1, valueOf: 1 } } });
  const wrong = { code: "response_invalid", reason: "reasons" };
  await assert.rejects(kyc.valid({ user: alice, infos }), wrong);
});

test("proof reads the proofs of a field, an omitted list as none, and refuses a malformed one", async () => {
  const proof = {
    field: "EMAIL",
    commitment: hash,
    expiresAt: 9,
    leaf: hash,
    root: hash,
    proof: [hash],
    issuer: alice,
    transactionHash: hash,
    chainId: 1,
    registry: alice,
  };
  succeed({ proofs: [proof] });
  assert.deepEqual(await kyc.proof({ user: alice, items: ["EMAIL"] }), [proof]);
  assert.equal(only().path, "/api/v1/blockchain/proof");
  succeed({ proofs: [proof, { ...proof, root: "0x12" }] });
  await assert.rejects(kyc.proof({ user: alice, items: ["EMAIL"] }), {
    code: "response_invalid",
    reason: "root",
  });
  succeed({});
  assert.deepEqual(await kyc.proof({ user: alice, items: ["EMAIL"] }), []);
});

test("receipt asks for an attempt, and what is no receipt is refused", async () => {
  succeed({ referenceKey });
  await assert.rejects(kyc.receipt(referenceKey, { attempt: 2 }), { code: "response_invalid" });
  assert.deepEqual(only().query, [
    ["referenceKey", referenceKey],
    ["attempt", "2"],
  ]);
});

test("a refusal carries reason, status, requestId and details", async () => {
  const details = { requiredChf: 2.5 };
  const error = { code: 402, reason: "package_exhausted", message: "m", requestId: "req_1" };
  refuse(402, { ...error, details });
  const caught = await kyc.status(referenceKey).then(
    () => assert.fail("refused"),
    (thrown: unknown) => thrown,
  );
  assert.ok(caught instanceof MerchantError);
  const { code, reason, status, requestId } = caught;
  assert.equal(caught.explanation, "m");
  assert.deepEqual(
    { code, reason, status, requestId, details: caught.details },
    {
      code: "call_refused",
      reason: "package_exhausted",
      status: 402,
      requestId: "req_1",
      details,
    },
  );
});

test("a refusal has an error code that follows from its status, and a 429 says when to come again", async () => {
  const rows: [status: number, code: string][] = [
    [400, "call_refused"],
    [401, "apikey_refused"],
    [404, "call_refused"],
    [410, "call_refused"],
    [422, "call_refused"],
    [429, "rate_limited"],
    [500, "issuer_unreachable"],
    [503, "issuer_unreachable"],
  ];
  for (const [status, code] of rows) {
    refuse(status, { code: status, reason: "some_reason" }, { "retry-after": "7" });
    await assert.rejects(kyc.status(referenceKey), (error: MerchantError) => {
      assert.equal(error.code, code);
      assert.equal(error.status, status);
      assert.equal(error.retryAfterSeconds, code === "rate_limited" ? 7 : undefined);
      return true;
    });
  }
});

test("text of an answer that is no name does not reach the error", async () => {
  refuse(400, { reason: "canary@example.com", requestId: "<canary>", message: "canary" });
  await assert.rejects(kyc.status(referenceKey), (error: Error) => {
    assert.doesNotMatch(`${String(error)} ${JSON.stringify(error)} ${inspect(error)}`, /canary/);
    return true;
  });
});

test("what the service says of a refusal is one line, for whoever asks for it", async () => {
  const rows: [message: unknown, explanation: string | undefined][] = [
    ["Invalid Request: items is missing", "Invalid Request: items is missing"],
    ["two\nlines", "two lines"],
    ["x".repeat(600), "x".repeat(500)],
    ["\u001b[2J", undefined],
    [7, undefined],
  ];
  for (const [message, explanation] of rows) {
    refuse(400, { reason: "invalid_request", message });
    await assert.rejects(kyc.status(referenceKey), (error: MerchantError) => {
      assert.equal(error.explanation, explanation);
      return true;
    });
  }
});

test("what is no answer of the service is refused", async () => {
  const bodies = [
    "",
    "<html>",
    "[]",
    "null",
    "{}",
    `{"success":true}`,
    `{"data":{"status":"PENDING","createdAt":1},"success":false}`,
  ];
  for (const body of bodies) {
    answer = { body };
    await assert.rejects(kyc.status(referenceKey), { code: "response_invalid" }, body);
  }
  for (const data of [{}, { status: "DONE", createdAt: 1 }, { status: "PENDING" }]) {
    succeed(data);
    await assert.rejects(kyc.status(referenceKey), { code: "response_invalid" });
  }
});

test("a redirect is not followed, so that the key goes nowhere else", async () => {
  answer = { status: 307, headers: { location: `${issuer}/elsewhere` }, body: "" };
  await assert.rejects(kyc.status(referenceKey), { code: "issuer_unreachable" });
  assert.equal(calls.length, 1);
});

test("a service that does not answer is given up", async () => {
  answer = "hang";
  const hurried = openKyc({ issuer, apiKey, timeoutMs: 100 });
  await assert.rejects(hurried.status(referenceKey), { code: "issuer_unreachable" });
});

const endless = async () =>
  new Response(
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(8 * 1024 * 1024)),
    }),
  );

test("what is asked for may be as long as events are, and the answer to an act may not", async () => {
  succeed({ items: [], count: 1, padding: "x".repeat(3 * 1024 * 1024) });
  assert.deepEqual(await kyc.events(referenceKey), []);
  await assert.rejects(kyc.redeliver(referenceKey), { code: "issuer_unreachable" });
});

test("an answer without end is given up", async () => {
  const patient = openKyc({ issuer, apiKey, fetch: endless });
  await assert.rejects(patient.status(referenceKey), { code: "issuer_unreachable" });
});

test("options that cannot work are refused before anything is sent", () => {
  const rows: [object, string][] = [
    [{ issuer: "http://id.example" }, "issuer"],
    [{ issuer: "https://id.example/" }, "issuer"],
    [{ issuer: "id.example" }, "issuer"],
    [{ apiKey: "" }, "apiKey"],
    [{ apiKey: `Bearer ${apiKey}` }, "apiKey"],
    [{ apiKey: `${apiKey}\n` }, "apiKey"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ timeoutMs: Number.NaN }, "timeoutMs"],
    [{ timeoutMs: Infinity }, "timeoutMs"],
    [{ timeoutMs: 3_000_000_000 }, "timeoutMs"],
    [{ issuer: "https://login.example.com?x=" }, "issuer"],
  ];
  for (const [changed, reason] of rows) {
    const expected = { code: "configuration_invalid", reason };
    assert.throws(() => openKyc({ issuer, apiKey, ...changed }), expected);
  }
});

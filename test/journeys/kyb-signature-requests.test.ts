// Signature requests as merchants manage them: windows, repeated calls, lists, events, limits; and what they do not tell.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiKey, createDomain } from "../../service/src/accounts/index.ts";
import { lockDueBallots } from "../../service/src/kyb/ballot/ballot-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { purgeBallots } from "../../service/src/kyb/ballot/ballots.ts";
import { runHourlyJobs } from "../kyb-retention.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";
import { runVerb } from "../operator-verbs.ts";
import { openSignatureWorld, signaturesPath, someText } from "../kyb-signature-world.ts";
import { untilAvailable } from "../try-again.ts";

await using world = await openSignatureWorld();
const { ctx, business } = world;

const get = async (path: string, apiKey = world.apiKey): Promise<Answer> =>
  world.call("GET", path, { apiKey });
const cancel = async (id: string, apiKey = world.apiKey): Promise<Answer> =>
  world.call("POST", `${signaturesPath}/${id}/cancel`, { apiKey });
const idsOf = ({ body }: Answer): string[] =>
  (body["items"] as { requestId: string }[]).map(({ requestId }) => requestId);

await test("how long members may vote is clamped to 5 minutes and 24 hours", async () => {
  const rows: [number | undefined, number][] = [
    [undefined, 86_400],
    [1, 300],
    [299, 300],
    [300, 300],
    [86_400, 86_400],
    [86_401, 86_400],
  ];
  for (const [expiresInSeconds, window] of rows) {
    const { status, body } = await world.askSignature({ expiresInSeconds });
    assert.equal(status, 201);
    assert.equal(Number(body["expiresAt"]) - Number(body["createdAt"]), window);
    await cancel(String(body["requestId"]));
  }
  for (const expiresInSeconds of ["300", 300.5, null, true])
    assert.deepEqual(reasonOf(await world.askSignature({ expiresInSeconds })), [
      400,
      "malformed_request",
    ]);
});

await test("the shortest window ends after 300 seconds, and not before", async (t) => {
  const id = await world.begin({ expiresInSeconds: 1 });
  const item = await world.findVote("alice", id);
  const { createdAt, expiresAt } = (await get(`${signaturesPath}/${id}`)).body as Record<
    string,
    number
  >;
  assert.equal(Number(item["expiresAt"]), expiresAt);
  assert.equal(Number(item["validUntil"]), Number(expiresAt) + 3600);
  const lastSecond = t.mock.method(ctx.clock, "now", () => Number(expiresAt));
  assert.deepEqual(await lockDueBallots(ctx.db, Number(expiresAt), 10), []);
  assert.equal((await world.voteAs("alice", id, { item })).body["status"], "open");
  lastSecond.mock.restore();
  const voted = await ctx.db.query(sql`select member from business_member where has_voted`);
  assert.deepEqual(voted, [{ member: world.person("alice").address }]);
  // Twenty seconds short, for the run time of the test itself.
  await world.advance(Number(createdAt) + 280 - ctx.clock.now());
  assert.equal((await get(`${signaturesPath}/${id}`)).body["status"], "pending_approval");
  await world.advance(21);
  await world.reach(id, "expired");
});

await test("a create names an Idempotency-Key, and repeated it asks once", async () => {
  const body = { businessWalletAddress: business.address, ...someText };
  const none = await world.call("POST", signaturesPath, { body });
  assert.deepEqual(reasonOf(none), [400, "idempotency_key_required"]);
  assert.match(none.body.error?.message ?? "", /^idempotency_key_required/);
  const headers = { "idempotency-key": "terms-1" };
  const raw = async (): Promise<[number, string]> => {
    const answer = await fetch(`${world.baseUrl}${signaturesPath}`, {
      method: "POST",
      headers: { authorization: world.apiKey, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return [answer.status, await answer.text()];
  };
  const [made, again] = [await raw(), await raw()];
  assert.deepEqual([made[0], again[0]], [201, 200]);
  assert.equal(again[1], made[1], "byte for byte");
  const id = String((JSON.parse(made[1]) as Record<string, unknown>)["requestId"]);
  assert.equal((await world.eventsOf(id)).length, 1);
  const other = await world.askSignature({ message: "Other terms" }, { headers });
  assert.deepEqual(reasonOf(other), [409, "idempotency_key_conflict"]);
  await cancel(id);
  const after = await raw();
  assert.deepEqual(after, [200, made[1]], "the answer of then, whatever became of it");
  const theirs = await world.otherMerchant();
  const own = await world.askSignature({}, { headers, apiKey: theirs });
  assert.equal(own.status, 201, "another client domain has its own keys");
  for (const key of ["", "a b", "x".repeat(256), "ä"])
    await assertRefusedKey({ "idempotency-key": Buffer.from(key).toString("latin1") });
  await world.advance(86_401);
  const next = await raw();
  assert.equal(next[0], 201, "a day later the key is free");
  await cancel(String((JSON.parse(next[1]) as Record<string, unknown>)["requestId"]));
});

await test("a repeat is the same call in whatever order its members are written, and any number may be among them", async () => {
  const terms = [{ name: "text", type: "string", limit: "1e999" }];
  const typedData = {
    domain: { name: "Shop", version: "1" },
    types: { Terms: terms },
    primaryType: "Terms",
    message: { text: "I agree" },
  };
  const { purpose } = someText;
  const body = {
    businessWalletAddress: business.address,
    messageKind: "TYPED_DATA",
    typedData,
    purpose,
  };
  const answers: [number, string][] = [];
  for (const given of [body, withMembersReversed(body)]) {
    const answer = await fetch(`${world.baseUrl}${signaturesPath}`, {
      method: "POST",
      headers: {
        authorization: world.apiKey,
        "content-type": "application/json",
        "idempotency-key": "order-1",
      },
      body: JSON.stringify(given).replace('"1e999"', "1e999"),
    });
    answers.push([answer.status, await answer.text()]);
  }
  const made = answers[0]?.[1] ?? "";
  assert.deepEqual(answers, [
    [201, made],
    [200, made],
  ]);
  await cancel(String((JSON.parse(made) as Record<string, unknown>)["requestId"]));
});

await test("a repeat after an upgrade is the same call, though a version before kept the order of its members", async () => {
  const headers = { "idempotency-key": "upgrade-1" };
  const body = { ...someText, businessWalletAddress: business.address };
  const call = async (changed: object = {}): Promise<Answer> =>
    world.call("POST", signaturesPath, { headers, body: { ...body, ...changed } });
  const made = await call();
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const asWritten = JSON.stringify(["POST", signaturesPath, body]);
  await ctx.db.query(
    sql`update kyb_idempotency set request_mac = ${ctx.keys.mac("kyb-idempotency", asWritten)} where key = 'upgrade-1'`,
  );
  const repeated = await call();
  assert.deepEqual([repeated.status, repeated.body], [200, made.body]);
  assert.deepEqual(reasonOf(await call({ purpose: "To agree on others" })), [
    409,
    "idempotency_key_conflict",
  ]);
  await cancel(String(made.body["requestId"]));
});

function withMembersReversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMembersReversed);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).toReversed();
  return Object.fromEntries(members.map(([name, each]) => [name, withMembersReversed(each)]));
}

async function assertRefusedKey(headers: Record<string, string>): Promise<void> {
  const { status } = await world.askSignature({}, { headers });
  assert.equal(status, 400, JSON.stringify(headers));
}

await test("fifty creates at once under one key are one request", async () => {
  const headers = { "idempotency-key": "crowd-1" };
  const crowd = Array.from({ length: 50 }, async () =>
    untilAvailable(async () => world.askSignature({}, { headers })),
  );
  const answers = await Promise.all(crowd);
  assert.equal(answers.filter(({ status }) => status === 201).length, 1);
  assert.equal(answers.filter(({ status }) => status === 200).length, 49);
  const [id = "", ...others] = new Set(answers.map(({ body }) => String(body["requestId"])));
  assert.deepEqual(others, []);
  await cancel(id);
});

await test("the list pages from the newest on, and filters by status", async () => {
  const apiKey = await world.otherMerchant();
  const made: string[] = [];
  for (let number = 0; number < 5; number += 1) made.push(await world.begin({}, { apiKey }));
  const [first = "", second = ""] = made;
  for (const id of [first, second]) await cancel(id, apiKey);
  const newest = made.toReversed();
  const list = async (query: string): Promise<Answer> => get(`${signaturesPath}?${query}`, apiKey);
  assert.deepEqual(idsOf(await get(signaturesPath, apiKey)), newest);
  const page = await list("limit=2");
  assert.deepEqual(idsOf(page), newest.slice(0, 2));
  const rest = await list(`limit=3&cursor=${String(page.body["nextCursor"])}`);
  assert.deepEqual(idsOf(rest), newest.slice(2));
  assert.ok(!("nextCursor" in rest.body));
  assert.deepEqual(idsOf(await list("status=cancelled")), [second, first]);
  assert.deepEqual(idsOf(await list("status=pending_approval&limit=1")), newest.slice(0, 1));
  assert.deepEqual(idsOf(await list("status=signed")), []);
  for (const query of ["limit=0", "limit=101", "limit=x", "status=open", "cursor=1", "more=1"])
    assert.deepEqual(reasonOf(await list(query)), [400, "malformed_request"], query);
  const { body } = await list("status=open");
  assert.match(JSON.stringify(body), /status must be one of pending_approval, .*signed/);
  for (const id of made.slice(2)) await cancel(id, apiKey);
});

await test("deliveries and events after a sequence are listed, and events are sent again", async () => {
  const id = await world.begin({ message: "Told terms" });
  await cancel(id);
  const [pending, cancelled] = await world.eventsOf(id);
  await world.receiver.arrivalOf(cancelled?.event_id ?? "");
  const after = await get(`${signaturesPath}/${id}/events?after_seq=1`);
  const listed = after.body["items"] as Record<string, unknown>[];
  assert.deepEqual(
    listed.map(({ eventId, seq, event }) => [eventId, seq, event]),
    [[cancelled?.event_id, 2, "kyb.signature_request.cancelled"]],
  );
  assert.deepEqual((await get(`${signaturesPath}/${id}/events?after_seq=2`)).body["items"], []);
  const attemptsOf = async (): Promise<Record<string, unknown>[]> =>
    (await get(`${signaturesPath}/${id}/deliveries`)).body["items"] as Record<string, unknown>[];
  const attempts = await world.until("both are delivered", async () => {
    const items = await attemptsOf();
    return items.length === 2 ? items : null;
  });
  assert.deepEqual(
    attempts.map(({ eventId, seq, outcome, status }) => [eventId, seq, outcome, status]),
    [
      [pending?.event_id, 1, "delivered", 200],
      [cancelled?.event_id, 2, "delivered", 200],
    ],
  );
  const [status, said] = await runVerb(world, ["request", "show", id]);
  assert.equal(status, 0, said);
  const shown = JSON.parse(said) as Record<string, Record<string, unknown>[]>;
  assert.deepEqual([shown["requestId"], shown["kind"]], [id, "signature_request"]);
  assert.deepEqual(
    shown["events"]?.map(({ sequence, to }) => [sequence, to]),
    [
      [2, "endpoint"],
      [1, "endpoint"],
    ],
  );
  assert.deepEqual(
    shown["attempts"]?.map(({ outcome }) => outcome),
    ["delivered", "delivered"],
  );
  assert.match(
    (await runVerb(world, ["request", "show", `${id}x`]))[1],
    /request_not_found|no such/,
  );
  const pages = ["after_seq=1", "after_seq=1&after_attempt=1", "after_seq=1&after_attempt=0"];
  const lists = await Promise.all(
    pages.map(async (page) => get(`${signaturesPath}/${id}/deliveries?${page}`)),
  );
  assert.deepEqual(
    lists.map(({ body }) => body["items"]),
    [attempts.slice(1), attempts.slice(1), attempts],
  );
  for (const list of ["events", "deliveries"]) {
    const listOf = async (query: string) =>
      (await get(`${signaturesPath}/${id}/${list}${query}`)).body;
    const whole = await listOf("");
    assert.equal(whole["nextCursor"], undefined);
    const first = await listOf("?limit=1");
    const rest = await listOf(`?limit=1&cursor=${String(first["nextCursor"])}`);
    assert.deepEqual([first["items"], rest["items"]].flat(), whole["items"]);
    assert.equal(rest["nextCursor"], undefined);
    for (const cursor of ["x", "1.x", "-1", ""])
      assert.deepEqual(reasonOf(await get(`${signaturesPath}/${id}/${list}?cursor=${cursor}`)), [
        400,
        "malformed_request",
      ]);
  }
  const path = `${signaturesPath}/${id}/redeliver`;
  const one = await world.call("POST", path, { body: { eventId: pending?.event_id } });
  assert.deepEqual([one.status, one.body], [200, { count: 1 }]);
  await world.until("it was delivered twice", async () =>
    (await attemptsOf()).length === 3 ? true : null,
  );
  const arrived = world.receiver.received.filter(
    ({ headers }) => headers["svc-event-id"] === pending?.event_id,
  );
  assert.equal(arrived.length, 2);
  assert.equal(arrived[0]?.body, arrived[1]?.body, "the same bytes");
  const headers = { "idempotency-key": "again-1" };
  for (let call = 0; call < 2; call += 1)
    assert.deepEqual((await world.call("POST", path, { headers })).body, { count: 2 });
  const unknown = await world.call("POST", path, { body: { eventId: "01J" } });
  assert.deepEqual(reasonOf(unknown), [404, "event_not_found"]);
});

await test("of the 5 open requests none counts whose time is over, also before a job has ended it", async (t) => {
  const apiKey = await world.otherMerchant();
  const window = { expiresInSeconds: 300 };
  const open: string[] = [];
  for (let number = 0; number < 5; number += 1) open.push(await world.begin(window, { apiKey }));
  const { body } = await get(`${signaturesPath}/${open[4]}`, apiKey);
  const { expiresAt } = body as { expiresAt: number };
  const clock = t.mock.method(ctx.clock, "now", () => expiresAt + 1);
  const sixth = await world.askSignature({}, { apiKey });
  clock.mock.restore();
  assert.equal(sixth.status, 201);
  for (const id of open)
    assert.equal((await get(`${signaturesPath}/${id}`, apiKey)).body["status"], "expired");
  await cancel(String(sixth.body["requestId"]), apiKey);
});

await test("an organization has at most 5 open requests and 20 a day to one business, until a day is over", async () => {
  const apiKey = await world.otherMerchant();
  const open: string[] = [];
  for (let number = 0; number < 5; number += 1) open.push(await world.begin({}, { apiKey }));
  const sixth = await world.askSignature({}, { apiKey });
  assert.deepEqual(reasonOf(sixth), [429, "rate_limited"]);
  assert.match(sixth.body.error?.message ?? "", /^rate_limited: /);
  assert.equal(sixth.headers.get("ratelimit"), '"default";r=0;t=60');
  assert.equal(sixth.headers.get("ratelimit-policy"), '"default";q=5');
  for (const id of open) await cancel(id, apiKey);
  const since = ctx.clock.now();
  for (let number = 5; number < 20; number += 1)
    await cancel(await world.begin({}, { apiKey }), apiKey);
  const beyond = await world.askSignature({}, { apiKey });
  assert.deepEqual(reasonOf(beyond), [429, "rate_limited"]);
  assert.ok(Number(beyond.headers.get("retry-after")) > 0);
  assert.equal(beyond.headers.get("ratelimit-policy"), '"default";q=20;w=86400');
  const others = await world.otherMerchant();
  await cancel(await world.begin({}, { apiKey: others }), others);
  const elsewhere = await world.found({ members: ["alice"], name: "Andere AG" });
  await world.begin({ businessWalletAddress: elsewhere.address }, { apiKey });
  await world.advance(since + 86_390 - ctx.clock.now());
  const nearly = await world.askSignature({}, { apiKey });
  assert.deepEqual(reasonOf(nearly), [429, "rate_limited"]);
  // Retry-After is long enough, but not longer than until the oldest request is a day old.
  const waitSeconds = Number(nearly.headers.get("retry-after"));
  assert.ok(waitSeconds > 0 && waitSeconds <= 10, String(waitSeconds));
  await world.advance(waitSeconds);
  await cancel(await world.begin({}, { apiKey }), apiKey);
});

const longTerms = (length: number): object => ({
  domain: { name: "Shop" },
  types: { Terms: [{ name: "text", type: "string" }] },
  primaryType: "Terms",
  message: { text: '"'.repeat(length) },
});

await test("a document of 64 KiB is taken however it is escaped, a text of 4096 bytes, and no body beyond 160 KiB", async () => {
  // Each quote is escaped to two bytes, and both count.
  const largest = { messageKind: "TYPED_DATA", message: undefined, typedData: longTerms(32_600) };
  await cancel(await world.begin(largest));
  const larger = await world.askSignature({ ...largest, typedData: longTerms(32_800) });
  assert.deepEqual(reasonOf(larger), [400, "malformed_request"]);
  await cancel(await world.begin({ message: "ä".repeat(2048) }));
  const longer = await world.askSignature({ message: `${"ä".repeat(2048)}x` });
  assert.deepEqual(reasonOf(longer), [400, "malformed_request"]);
  for (const path of [signaturesPath, `${signaturesPath}/offers`]) {
    const body = { ...someText, message: "x".repeat(161 * 1024) };
    const answer = await world.call("POST", path, { body });
    assert.deepEqual(reasonOf(answer), [413, "body_too_large"]);
  }
});

await test("a sandbox business signs for a sandbox key, and its events say so", async () => {
  const given = { organizationId: world.organizationId, domain: "localhost" };
  const domain = await createDomain(ctx, { ...given, environment: "sandbox" }, "test");
  const added = { clientDomainId: domain.id, name: "Backend" };
  const { key: apiKey } = await createApiKey(ctx, added, "test");
  const { url } = world.receiver;
  const endpoint = await world.call("PUT", "/api/v1/kyb/webhook-endpoint", {
    apiKey,
    body: { url },
  });
  world.receiver.trust(endpoint.body["secret"]);
  const own = await world.found({ members: ["sara"], name: "Probe AG", environment: "sandbox" });
  const id = await world.begin({ businessWalletAddress: own.address }, { apiKey });
  await world.voteAs("sara", id);
  await world.reach(id, "signed", apiKey);
  const events = await world.eventsOf(id, apiKey);
  assert.deepEqual(
    events.map(({ livemode }) => livemode),
    [false, false],
  );
});

await test("a business that has blocked an organization is asked nothing, by request or by offer", async () => {
  const apiKey = await world.otherMerchant();
  const requestId = await world.begin({}, { apiKey });
  const headers = { "idempotency-key": "blocked-1" };
  const options = { apiKey, headers, body: someText };
  const offered = await world.call("POST", `${signaturesPath}/offers`, options);
  const link = String(offered.body["link"]);
  const conn = new URLSearchParams(link.slice(link.indexOf("?"))).get("conn") ?? "";
  const claim = async (): Promise<Answer> => {
    const body = { svcID: world.person("alice").address, business: business.address };
    return world.walletCall("alice", "POST", `${new URL(conn).pathname}/claim`, { body });
  };
  const path = `/w/businesses/${business.address}/block`;
  const { address: other } = await world.found({ members: ["alice"], name: "Frei AG" });
  const foreign = { body: { requestId } };
  const strange = await world.walletCall("alice", "POST", `/w/businesses/${other}/block`, foreign);
  assert.deepEqual(reasonOf(strange), [404, "request_not_found"]);
  await world.walletCall("alice", "POST", path, { body: { requestId } });
  assert.deepEqual(reasonOf(await world.askSignature({}, { apiKey })), [403, "requester_blocked"]);
  const asked = await world.askSignature({ businessWalletAddress: other }, { apiKey });
  assert.equal(asked.status, 201, "another business blocked nobody");
  assert.deepEqual(reasonOf(await claim()), [403, "requester_blocked"]);
  assert.equal((await cancel(requestId, apiKey)).status, 200, "what was asked before goes on");
  await world.walletCall("bob", "POST", path, { body: { requestId, isBlocked: false } });
  assert.equal((await claim()).status, 200);
});

await test("no answer, event or failure names a voter or a tally, whatever the outcome", async () => {
  const signed = await world.begin({ message: "Shown terms" });
  for (const name of ["alice", "bob"]) await world.voteAs(name, signed);
  const refused = await world.begin({ message: "Refused terms" });
  for (const name of ["carol", "bob"]) await world.voteAs(name, refused, { vote: "reject" });
  const expired = await world.begin({ message: "Expired terms", expiresInSeconds: 300 });
  await world.voteAs("alice", expired);
  await world.advance(301);
  await world.reach(signed, "signed");
  await world.reach(refused, "refused");
  await world.reach(expired, "expired");
  const seen: string[] = [];
  for (const id of [signed, refused, expired])
    for (const part of ["", "/events", "/deliveries", "/signature"]) {
      const { status, body } = await get(`${signaturesPath}/${id}${part}`);
      assert.ok(status === 200 || body.error?.reason === "not_signed");
      seen.push(JSON.stringify(body));
    }
  seen.push(JSON.stringify((await get(`${signaturesPath}?limit=100`)).body));
  const all = [...seen, ...world.receiver.received.map(({ body }) => body)].join("\n");
  for (const name of ["alice", "bob", "carol"])
    assert.ok(!all.toLowerCase().includes(world.person(name).address.slice(2)), name);
  assert.ok(!/"(votes?|voters?|needed|tally|approvals|refusals|epoch|recordings)"/i.test(all));
});

await test("documents go 30 days after the end of their request; the signature stays", async () => {
  const { requestId: id } = await world.sign({ message: "Canary terms" });
  // As if the members had taken three days.
  await ctx.db.query(
    sql`update signature_request set created_at = created_at - ${3 * 86_400} where id = ${String(id)}`,
  );
  const kept = async (): Promise<boolean> => {
    const [row] = await ctx.db.query<{ isKept: boolean }>({
      name: "",
      text: `select document_sealed is not null as "isKept" from signature_request where id = $1`,
      values: [id],
    });
    return row?.isKept === true;
  };
  await world.advance(29 * 86_400);
  await runHourlyJobs(ctx);
  assert.ok(await kept());
  await world.advance(2 * 86_400);
  await runHourlyJobs(ctx);
  assert.equal(await kept(), false);
  const { status, body } = await get(`${signaturesPath}/${String(id)}/signature`);
  assert.equal(status, 200);
  assert.match(String(body["signature"]), /^0x01[0-9a-f]{64}$/);
});

await test("a block can be taken back by a signature request that was voted on long ago", async () => {
  const apiKey = await world.otherMerchant();
  const requestId = await world.begin({}, { apiKey });
  const path = `/w/businesses/${business.address}/block`;
  await world.walletCall("alice", "POST", path, { body: { requestId } });
  await cancel(requestId, apiKey);
  await world.advance(31 * 86_400);
  await purgeBallots(ctx);
  const body = { requestId, isBlocked: false };
  assert.equal((await world.walletCall("bob", "POST", path, { body })).status, 200);
  assert.equal((await world.askSignature({}, { apiKey })).status, 201);
});

// A merchant asks a business for data: what it costs, who decides, what comes of it, and what nobody learns.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createPublicKey, type JsonWebKey, verify } from "node:crypto";
import { hashOfBusinessField } from "@svc/protocol";
import {
  createApiKey,
  createDomain,
  createOrganization,
  setEntitlement,
  topUp,
} from "../../service/src/accounts/index.ts";
import { openDataWorld, registerEndpoint, requestsPath, someRequest } from "../kyb-data-world.ts";
import { addMerchant } from "../kyb-merchant.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";
import { runVerb } from "../operator-verbs.ts";

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx, business } = world;
const quotePath = `${requestsPath}/quote`;

const get = async (path: string, apiKey = world.apiKey): Promise<Answer> =>
  world.call("GET", path, { apiKey });
const account = async (): Promise<Record<string, unknown>> =>
  (await get("/api/v1/kyb/billing/account")).body;
const idOf = ({ status, body }: Answer): string => {
  assert.equal(status, 201, JSON.stringify(body));
  return String(body["requestId"]);
};
const partOf = (jwt: string, index: number): Record<string, unknown> =>
  JSON.parse(Buffer.from(jwt.split(".")[index] ?? "", "base64url").toString()) as Record<
    string,
    unknown
  >;

/** Cancels a test's request at its end, because only one may be open at a time. */
async function ended(id: string): Promise<void> {
  await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
}

/** Another merchant, with money, an endpoint and the entitlements that are named. */
async function otherMerchant(
  entitlements: readonly string[],
  { money = 10_000n, hasEndpoint = true } = {},
): Promise<string> {
  const { apiKey } = await addMerchant(world, { entitlements, fundsRappen: money });
  if (hasEndpoint) await registerEndpoint(world, apiKey);
  return apiKey;
}

await test("two of three members approve: the merchant gets a signed attestation and pays for what was released", async () => {
  const before = await account();
  const asked = await world.ask({ reference: "order 4711" });
  const id = idOf(asked);
  assert.deepEqual(asked.body, {
    requestId: id,
    businessWalletAddress: business.address,
    purpose: someRequest.purpose,
    reference: "order 4711",
    fields: [
      ["BUSINESS_LEGAL_NAME", false, false, "BUSINESS"],
      ["BUSINESS_DIRECTOR_NAME", true, false, "DIRECTOR"],
      ["BUSINESS_DIRECTOR_COUNT", false, true, "BUSINESS"],
    ].map(([name, naturalPersonPii, optional, subjectType]) => ({
      name,
      hash: hashOfBusinessField(name as "BUSINESS_LEGAL_NAME"),
      naturalPersonPii,
      optional,
      subjectType,
    })),
    status: "pending_approval",
    createdAt: asked.body["createdAt"],
    expiresAt: Number(asked.body["createdAt"]) + 86_400,
    price: {
      quotedCents: 750,
      currency: "CHF",
      lines: [
        { field: "BUSINESS_LEGAL_NAME", tier: "A", cents: 100 },
        { field: "BUSINESS_DIRECTOR_NAME", tier: "C", cents: 400 },
        { field: "BUSINESS_DIRECTOR_COUNT", tier: "B", cents: 250 },
      ],
    },
  });
  const held = await account();
  assert.equal(held["frozenChf"], 7.5);
  assert.equal(held["availableChf"], Number(before["availableChf"]) - 7.5);
  assert.deepEqual(reasonOf(await get(`${requestsPath}/${id}/release`)), [404, "not_released"]);

  const first = await world.voteAs("alice", id, { optional: [] });
  assert.deepEqual(first.body, { id, status: "open" });
  const pending = await get(`${requestsPath}/${id}`);
  assert.deepEqual(pending.body, asked.body, "the first vote shows nowhere");
  const { fixedOptional } = await world.findVote("bob", id);
  assert.deepEqual(fixedOptional, []);
  assert.deepEqual((await world.voteAs("bob", id)).body, { id, status: "approved" });
  await world.waitFor(id, "released");

  const events = await world.eventsOf(id);
  assert.deepEqual(
    events.map(({ event, seq, stream_id: stream }) => [event, seq, stream]),
    [
      ["kyb.data_request.pending_approval", 1, id],
      ["kyb.data_request.released", 2, id],
    ],
  );
  const released = events[1];
  assert.ok(released?.attestation !== undefined);
  const { body: again } = await get(`${requestsPath}/${id}/release`);
  assert.equal(again["attestation"], released.attestation, "byte for byte as delivered");
  assert.equal(Number(again["expiresAt"]) - Number(again["releasedAt"]), 30 * 86_400);

  const after = await account();
  assert.equal(after["frozenChf"], 0);
  assert.equal(after["spentChf"], Number(before["spentChf"]) + 5, "the optional field stayed");
  const { body: charges } = await get("/api/v1/kyb/billing/charges?limit=1");
  const [charge] = charges["items"] as Record<string, unknown>[];
  assert.deepEqual(charge, {
    chargeId: charge?.["chargeId"],
    requestId: id,
    businessWalletAddress: business.address,
    chargedAt: again["releasedAt"],
    currency: "CHF",
    totalCents: 500,
    lines: [
      { field: "BUSINESS_LEGAL_NAME", tier: "A", cents: 100 },
      { field: "BUSINESS_DIRECTOR_NAME", tier: "C", cents: 400 },
    ],
  });
  const { body: known } = await get(`/api/v1/kyb/members/${business.address}`);
  assert.ok((known["members"] as { name?: string }[]).every(({ name }) => name !== undefined));
  const [status, said] = await runVerb(world, ["request", "show", id]);
  assert.equal(status, 0, said);
  const shown = JSON.parse(said) as Record<string, unknown>;
  assert.deepEqual([shown["kind"], shown["status"]], ["data_request", "released"]);
});

await test("the attestation holds what was decided, opens the leaves on chain, and verifies by the published keys", async () => {
  const { body: list } = await get(`${requestsPath}?status=released&limit=1`);
  const id = String((list["items"] as { requestId: string }[])[0]?.requestId);
  const { body: release } = await get(`${requestsPath}/${id}/release`);
  const jwt = String(release["attestation"]);
  const [header, claims] = [partOf(jwt, 0), partOf(jwt, 1)];
  assert.deepEqual([header["alg"], header["typ"]], ["RS256", "kyb-attestation+jwt"]);
  const { body: jwks } = await world.call("GET", "/.well-known/kyb-jwks.json", { apiKey: null });
  const jwk = (jwks["keys"] as (JsonWebKey & { kid: string })[]).find(
    ({ kid }) => kid === header["kid"],
  );
  assert.ok(jwk !== undefined);
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const [signed, signature] = [jwt.slice(0, jwt.lastIndexOf(".")), jwt.split(".")[2] ?? ""];
  assert.ok(verify("sha256", Buffer.from(signed), key, Buffer.from(signature, "base64url")));

  const event = (await world.eventsOf(id))[1];
  const { fields, ...rest } = claims;
  assert.deepEqual(rest, {
    iss: `${world.baseUrl}/kyb`,
    aud: world.clientDomainId,
    sub: business.address,
    jti: event?.event_id,
    iat: release["releasedAt"],
    exp: release["expiresAt"],
    event: "kyb.data_request.released",
    stream_id: id,
    seq: 2,
    livemode: true,
    approval: {
      approved_at: (rest["approval"] as { approved_at: number }).approved_at,
      action_id: id,
      threshold_met: true,
    },
  });
  const values = fields as Record<string, unknown>[];
  assert.deepEqual(
    values.map(({ name, subject, value, subject_type: type, provenance }) => [
      name,
      subject,
      type,
      value,
      provenance,
    ]),
    [
      ["BUSINESS_DIRECTOR_NAME", "director-1", "DIRECTOR", "Canary Muster", "Register AG"],
      ["BUSINESS_DIRECTOR_NAME", "director-2", "DIRECTOR", "Canary Beispiel", "Register AG"],
      ["BUSINESS_LEGAL_NAME", "", "BUSINESS", "Muster AG", "Register AG"],
    ],
  );
  for (const value of values)
    assert.deepEqual(Object.keys(value).toSorted(), [
      "as_of",
      "expires_at",
      "hash",
      "name",
      "pepper",
      "provenance",
      "subject",
      "subject_type",
      "value",
    ]);
  const { body: checked } = await world.call("POST", "/api/v1/kyb/valid", {
    body: {
      businessWalletAddress: business.address,
      fields: values.map(({ name, subject, hash }) => ({ name, subject, hash })),
    },
  });
  assert.equal((checked["valid"] as unknown[]).length, 3);
  const { body: proved } = await get(`${requestsPath}/${id}/proofs`);
  const leaves = (proved["proofs"] as { leaf: string }[]).map(({ leaf }) => leaf);
  assert.deepEqual(leaves.toSorted(), values.map(({ hash }) => String(hash)).toSorted());
  const told = JSON.stringify(event?.data);
  assert.ok(!told.includes("Canary"), "the envelope names fields, not values");
});

await test("prices, quotes and charges for the same fields agree line by line", async () => {
  const { body: pricing } = await get("/api/v1/kyb/pricing");
  const prices = new Map(
    (pricing["fields"] as { name: string; tier: string; cents: number }[]).map(
      ({ name, tier, cents }) => [name, { field: name, tier, cents }],
    ),
  );
  assert.equal(prices.size, 167);
  const asked = { fields: someRequest.fields, optionalFields: someRequest.optionalFields };
  const quoted = await world.call("POST", quotePath, { body: asked });
  const lines = [...asked.fields, ...asked.optionalFields].map((name) => prices.get(name));
  assert.deepEqual(quoted.body, { currency: "CHF", totalCents: 750, lines });
  const id = idOf(await world.ask());
  for (const name of ["alice", "carol"])
    await world.voteAs(name, id, { optional: ["BUSINESS_DIRECTOR_COUNT"] });
  const record = await world.waitFor(id, "released");
  const { body: charges } = await get("/api/v1/kyb/billing/charges?limit=1");
  const [charge] = charges["items"] as { lines: unknown; totalCents: number }[];
  assert.deepEqual(charge?.lines, lines);
  assert.deepEqual(record["price"], { quotedCents: 750, currency: "CHF", lines });
  assert.equal(charge.totalCents, 750);
});

await test("a request is refused in the documented order, each with its reason", async () => {
  const poor = await otherMerchant(["kyb:data-request", "kyb:pii"], { money: 0n });
  const plain = await otherMerchant(["kyb:data-request"]);
  const none = await otherMerchant([]);
  const deaf = await otherMerchant(["kyb:data-request", "kyb:pii"], { hasEndpoint: false });
  const nobody = `0x${"ab".repeat(20)}`;
  const wrong = { businessWalletAddress: nobody, fields: ["NO_SUCH_FIELD"] };
  const many = Array.from({ length: 41 }, (_, at) => `FIELD_${at}`);
  const rows: [[number, string], Record<string, unknown>, string?][] = [
    [[401, "apikey_invalid"], { fields: 1 }, "svc_live_x"],
    [[403, "kyb_not_entitled"], { fields: 1 }, none],
    [[400, "malformed_request"], { more: 1 }],
    [[400, "malformed_request"], { fields: [] }],
    [[400, "malformed_request"], { purpose: "short" }],
    [[400, "malformed_request"], { purpose: `${" ".repeat(8)}\n` }],
    [[400, "malformed_request"], { purpose: `bad ‮ text ${"x".repeat(10)}` }],
    [[400, "malformed_request"], { ...wrong, businessWalletAddress: "0x12" }],
    [[403, "pii_not_entitled"], { businessWalletAddress: nobody }, plain],
    [[404, "business_not_found"], wrong],
    [[400, "malformed_request"], { fields: many, optionalFields: [] }],
    [[422, "unknown_field"], { fields: many.slice(1), optionalFields: [] }],
    [[409, "no_webhook_endpoint"], {}, deaf],
    [[422, "field_not_available"], { fields: ["BUSINESS_WEBSITE"] }, poor],
    [[402, "no_credit_account"], {}, poor],
  ];
  for (const [expected, changed, apiKey] of rows) {
    const answer = await world.ask(changed, apiKey === undefined ? {} : { apiKey });
    assert.deepEqual(reasonOf(answer), expected, JSON.stringify(changed));
    assert.ok(answer.body.error?.message.startsWith(`${expected[1]}: `));
  }
  const short = await world.ask({}, { apiKey: poor });
  assert.deepEqual(short.body.error?.details, { requiredChf: 7.5, availableChf: 0 });
  const missing = await world.call("POST", "/api/v1/kyb/data-requests/01/nothing", { body: {} });
  assert.equal(missing.status, 404);
});

await test("names may be given by their hash", async () => {
  const fields = someRequest.fields.map((name) =>
    hashOfBusinessField(name as "BUSINESS_LEGAL_NAME"),
  );
  const asked = await world.ask({ fields, optionalFields: [] });
  const id = idOf(asked);
  const named = (asked.body["fields"] as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(named, someRequest.fields);
  await ended(id);
});

await test("one request of a client domain is open to a business, and the conflict names it", async () => {
  const id = idOf(await world.ask());
  const again = await world.ask();
  assert.deepEqual(reasonOf(again), [409, "request_already_open"]);
  assert.deepEqual(again.body.error?.details, { openRequestId: id });
  const other = await otherMerchant(["kyb:data-request", "kyb:pii"]);
  const theirs = await world.ask({}, { apiKey: other });
  assert.equal(theirs.status, 201, "another client domain has its own");
  for (const query of ["", "?status=pending_approval"]) {
    const { body } = await get(`${requestsPath}${query}`, other);
    assert.deepEqual(body["items"], [theirs.body], `and lists nobody else's${query}`);
  }
  const foreign = await get(`${requestsPath}/${id}`, other);
  assert.deepEqual(reasonOf(foreign), [404, "request_not_found"]);
  for (const path of ["release", "proofs", "events", "deliveries"])
    assert.deepEqual(reasonOf(await get(`${requestsPath}/${id}/${path}`, other)), [
      404,
      "request_not_found",
    ]);
  for (const verb of ["cancel", "redeliver"]) {
    const path = `${requestsPath}/${id}/${verb}`;
    const answer = await world.call("POST", path, { apiKey: other, body: {} });
    assert.deepEqual(reasonOf(answer), [404, "request_not_found"]);
  }
  await ended(id);
});

await test("a repeated create with its Idempotency-Key answers the same request and keeps the money back once", async () => {
  const headers = { "idempotency-key": "create-1" };
  const made = await world.ask({}, { headers });
  const frozen = (await account())["frozenChf"];
  const again = await world.ask({}, { headers });
  assert.deepEqual([made.status, again.status], [201, 200]);
  assert.deepEqual(again.body, made.body);
  assert.equal((await account())["frozenChf"], frozen);
  const other = await world.ask({ purpose: "Something else entirely" }, { headers });
  assert.deepEqual(reasonOf(other), [409, "idempotency_key_conflict"]);
  await ended(idOf(made));
});

await test("a cancelled request frees its money, is announced, and takes no vote", async () => {
  const before = await account();
  const id = idOf(await world.ask());
  const item = await world.findVote("alice", id);
  const path = `${requestsPath}/${id}/cancel`;
  const cancelled = await world.call("POST", path, { body: {} });
  assert.deepEqual([cancelled.status, cancelled.body["status"]], [200, "cancelled"]);
  assert.deepEqual(await account(), before);
  const late = await world.voteAs("alice", id, { item });
  assert.deepEqual(reasonOf(late), [409, "ballot_over"]);
  assert.deepEqual(reasonOf(await world.call("POST", path, { body: {} })), [
    409,
    "request_not_open",
  ]);
  const events = await world.eventsOf(id);
  assert.equal(events[1]?.event, "kyb.data_request.cancelled");
});

await test("a refusal is told 5 to 30 seconds after the vote that decides; until then nothing differs, not even the money", async () => {
  using _ = world.holdTime();
  const asked = await world.ask();
  const id = idOf(asked);
  const held = await account();
  await world.voteAs("alice", id, { vote: "reject" });
  const decided = await world.voteAs("bob", id, { vote: "reject" });
  assert.equal(decided.body["status"], "refused");
  assert.deepEqual((await get(`${requestsPath}/${id}`)).body, asked.body);
  assert.deepEqual(await account(), held);
  assert.equal((await world.eventsOf(id)).length, 1);
  assert.deepEqual(reasonOf(await world.ask()), [409, "request_already_open"]);
  await world.advance(30);
  const record = await world.waitFor(id, "refused");
  assert.equal(record["reason"], "declined");
  assert.equal((await account())["frozenChf"], 0);
  const [, told] = await world.eventsOf(id);
  assert.deepEqual([told?.event, told?.data["reason"]], ["kyb.data_request.refused", "declined"]);
});

await test("a request that nobody decides ends after 24 hours, however many had voted", async () => {
  const ids: string[] = [];
  for (const voters of [[], ["alice"]]) {
    using _ = world.holdTime();
    const id = idOf(await world.ask());
    ids.push(id);
    await world.advance(86_400);
    for (const name of voters) assert.equal((await world.voteAs(name, id)).status, 200);
    assert.equal((await get(`${requestsPath}/${id}`)).body["status"], "pending_approval");
    await world.advance(1);
    await world.waitFor(id, "refused");
  }
  const told = await Promise.all(
    ids.map(async (id) => {
      const [, last] = await world.eventsOf(id);
      const { request_id: _, created_at: __, expires_at: ___, ...rest } = last?.data ?? {};
      return rest;
    }),
  );
  assert.equal(told[0]?.["reason"], "expired");
  assert.deepEqual(told[0], told[1], "one that had a vote looks like one that had none");
});

await test("later approvals are for the fields that the first one fixed, and for nothing else", async () => {
  const id = idOf(await world.ask());
  const item = await world.findVote("alice", id);
  const odd = await world.voteAs("alice", id, { item, optional: ["BUSINESS_WEBSITE"] });
  assert.deepEqual(reasonOf(odd), [422, "result_refused"]);
  await world.voteAs("alice", id, { item, optional: ["BUSINESS_DIRECTOR_COUNT"] });
  const other = await world.voteAs("bob", id, { optional: [] });
  assert.deepEqual(reasonOf(other), [422, "signature_wrong"]);
  assert.match(String(other.body.error?.message), /another member may have decided/);
  const bobs = await world.findVote("bob", id);
  assert.equal((await world.voteAs("bob", id)).body["status"], "approved");
  await world.waitFor(id, "released");
  const repeated = await world.voteAs("bob", id, { item: bobs });
  assert.deepEqual(repeated.body, { id, status: "approved" }, "the same vote again is no other");
  const [, released] = await world.eventsOf(id);
  const fields = released?.data["fields"] as string[] | undefined;
  assert.ok(fields?.includes("BUSINESS_DIRECTOR_COUNT"));
});

await test("a business can stop an organization from asking, and take that back", async () => {
  const other = await otherMerchant(["kyb:data-request", "kyb:pii"]);
  const requestId = idOf(await world.ask({}, { apiKey: other }));
  await world.call("POST", `${requestsPath}/${requestId}/cancel`, { apiKey: other, body: {} });
  const path = `/w/businesses/${business.address}/block`;
  const stranger = await world.walletCall("mallory", "POST", path, { body: { requestId } });
  assert.deepEqual(reasonOf(stranger), [404, "business_not_found"]);
  assert.equal(
    (await world.walletCall("alice", "POST", path, { body: { requestId } })).status,
    200,
  );
  const refused = await world.ask({}, { apiKey: other });
  assert.deepEqual(reasonOf(refused), [403, "requester_blocked"]);
  const body = { requestId, isBlocked: false };
  await world.walletCall("bob", "POST", path, { body });
  assert.equal((await world.ask({}, { apiKey: other })).status, 201);
});

await test("an organization has at most 5 open requests and 20 a day to one business", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Many domains" }, "test");
  for (const entitlement of ["kyb:data-request", "kyb:pii"])
    await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "test");
  await topUp(ctx, { organizationId, environment: "live", amountRappen: 100_000n }, "test");
  const keys: string[] = [];
  for (let number = 0; number < 6; number += 1) {
    const domain = { organizationId, domain: `shop${number}.example.com`, environment: "live" };
    const { id: clientDomainId } = await createDomain(ctx, domain, "test");
    const { key } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
    await registerEndpoint(world, key);
    keys.push(key);
  }
  const open: string[] = [];
  for (const apiKey of keys.slice(0, 5)) open.push(idOf(await world.ask({}, { apiKey })));
  const sixth = await world.ask({}, { apiKey: keys[5] ?? "" });
  assert.deepEqual(reasonOf(sixth), [429, "rate_limited"]);
  const [apiKey = "", id = ""] = [keys[0], open[0]];
  await world.call("POST", `${requestsPath}/${id}/cancel`, { apiKey, body: {} });
  for (let made = 5; made < 20; made += 1) {
    const next = idOf(await world.ask({}, { apiKey }));
    await world.call("POST", `${requestsPath}/${next}/cancel`, { apiKey, body: {} });
  }
  const beyond = await world.ask({}, { apiKey });
  assert.deepEqual(reasonOf(beyond), [429, "rate_limited"]);
  const waitSeconds = Number(beyond.headers.get("retry-after"));
  assert.ok(waitSeconds > 0);
  await world.advance(waitSeconds);
  assert.equal((await world.ask({}, { apiKey })).status, 201, "when the day of the oldest is over");
});

await test("what the merchant can see names no voter and no tally, whatever the outcome", async () => {
  const { body } = await get(`${requestsPath}?limit=100`);
  const items = body["items"] as { requestId: string }[];
  const seen = await Promise.all(
    items.map(async ({ requestId }) => {
      const path = `${requestsPath}/${requestId}`;
      const answers = await Promise.all(
        ["", "/events", "/deliveries", "/release", "/proofs"].map(async (part) => get(path + part)),
      );
      return answers.map((answer) => JSON.stringify(answer.body)).join("\n");
    }),
  );
  const events = await Promise.all(items.map(async ({ requestId }) => world.eventsOf(requestId)));
  const claims = events
    .flat()
    .flatMap(({ attestation }) =>
      attestation === undefined ? [] : [JSON.stringify(partOf(attestation, 1))],
    );
  assert.ok(claims.length > 0);
  const all = [...seen, ...claims].join("\n").toLowerCase();
  for (const name of ["alice", "bob", "carol"]) {
    const { address } = world.person(name);
    assert.ok(!all.includes(address.slice(2)), `the address of ${name}`);
    assert.ok(!all.includes(`"${name}"`), name);
  }
  assert.ok(!/"(votes?|voters?|needed|tally|approvals|refusals)"/.test(all));
});

await test("what was released is gone after 30 days, in the release, the proofs and the event", async () => {
  const id = idOf(await world.ask());
  for (const name of ["alice", "bob"]) await world.voteAs(name, id);
  await world.waitFor(id, "released");
  await world.advance(30 * 86_400);
  for (const part of ["release", "proofs"])
    assert.deepEqual(reasonOf(await get(`${requestsPath}/${id}/${part}`)), [
      410,
      "payload_expired",
    ]);
  const { body } = await get(`${requestsPath}/${id}/events`);
  const [, released] = body["items"] as { body?: string }[];
  assert.equal(released?.body, undefined);
  const { body: charges } = await get("/api/v1/kyb/billing/charges?limit=1");
  assert.equal((charges["items"] as { requestId: string }[])[0]?.requestId, id, "the charge stays");
});

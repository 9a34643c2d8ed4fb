// Offers: a merchant shows a code, and whichever business scans it first is asked.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { parseLink, requestObjectHash } from "@svc/protocol";
import { hashMessage } from "viem";
import { setEntitlement, topUp } from "../../service/src/accounts/index.ts";
import { purgeOffers } from "../../service/src/kyb/offer/offers.ts";
import { openDataWorld, registerEndpoint, requestsPath, someRequest } from "../kyb-data-world.ts";
import { openReceiver } from "../kyb-receiver.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { addMerchant, type Merchant } from "../kyb-merchant.ts";
import { type Answer, reasonOf, type TestBusiness } from "../kyb-world.ts";
import { untilWritersEnd } from "../lock-waits.ts";
import { untilAvailable } from "../try-again.ts";

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx, business } = world;

type Kind = "data" | "signature";
const kinds: readonly Kind[] = ["data", "signature"];
const pathOf = { data: requestsPath, signature: signaturesPath };
const bodyOf = { data: someRequest, signature: someText };
/** Terms that no offer may have. */
const unfitOf = {
  data: { fields: ["NO_SUCH_FIELD"] },
  signature: { message: "evil.example wants you to sign in with your Ethereum account:\n0x00" },
};
const stranger = `0x${"ab".repeat(20)}`;

interface OfferOptions {
  readonly apiKey?: string;
  readonly changed?: Record<string, unknown>;
  readonly key?: string;
}

async function offer(kind: Kind, given: OfferOptions = {}): Promise<Answer> {
  const { apiKey = world.apiKey, changed = {}, key = randomBytes(8).toString("hex") } = given;
  return world.call("POST", `${pathOf[kind]}/offers`, {
    apiKey,
    headers: { "idempotency-key": key },
    body: { ...bodyOf[kind], ...changed },
  });
}

const show = async (made: Answer, apiKey = world.apiKey): Promise<Answer> =>
  world.call("GET", `/api/v1/kyb/offers/${String(made.body["offerId"])}`, { apiKey });
const cancel = async (made: Answer, apiKey = world.apiKey): Promise<Answer> =>
  world.call("POST", `/api/v1/kyb/offers/${String(made.body["offerId"])}/cancel`, { apiKey });

/** The path of the `conn` address in an offer's link. */
function connectionOf({ body }: Answer): string {
  const link = String(body["link"]);
  const connection = new URLSearchParams(link.slice(link.indexOf("?"))).get("conn") ?? "";
  assert.ok(connection.startsWith(`${world.baseUrl}/w/f/`));
  return new URL(connection).pathname;
}

async function claim(
  name: string,
  made: Answer,
  given: { business?: TestBusiness; changed?: Record<string, unknown> } = {},
): Promise<Answer> {
  const { address } = given.business ?? business;
  const body = { svcID: world.person(name).address, business: address, ...given.changed };
  return world.walletCall(name, "POST", `${connectionOf(made)}/claim`, { body });
}

/** Cancels a test's request at its end, because only one data request may be open at a time. */
async function end(kind: Kind, claimed: Answer, apiKey = world.apiKey): Promise<void> {
  assert.equal(claimed.status, 200, JSON.stringify(claimed.body));
  const path = `${pathOf[kind]}/${String(claimed.body["requestId"])}/cancel`;
  assert.equal((await world.call("POST", path, { apiKey })).status, 200);
}

async function otherMerchant(
  given: { money?: bigint; hasEndpoint?: boolean } = {},
): Promise<Merchant> {
  const { money = 10_000n, hasEndpoint = true } = given;
  const entitlements = ["kyb:data-request", "kyb:pii", "kyb:signature"];
  const made = await addMerchant(world, { entitlements, fundsRappen: money });
  if (hasEndpoint) await registerEndpoint(world, made.apiKey);
  return made;
}

async function grant(of: Merchant, entitlement: string, isGranted: boolean): Promise<void> {
  await setEntitlement(ctx, { organizationId: of.organizationId, entitlement, isGranted }, "test");
}

for (const kind of kinds)
  await test(`a ${kind} offer is claimed by a voting member and becomes a request of its business`, async () => {
    const made = await offer(kind);
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const { offerId, link, universalLink, qrcode, expiresAt, ...rest } = made.body;
    assert.deepEqual(rest, { status: "OPEN" });
    assert.match(String(universalLink), /^http.*\/l#svc:/);
    assert.ok(String(universalLink).endsWith(String(link)));
    assert.deepEqual(Buffer.from(String(qrcode), "base64").subarray(1, 4), Buffer.from("PNG"));
    checkLink(kind, { link: String(link), offerId: String(offerId), expiresAt: Number(expiresAt) });
    assert.deepEqual((await show(made)).body, made.body);

    const claimed = await claim("bob", made);
    assert.equal(claimed.status, 200, JSON.stringify(claimed.body));
    const requestId = String(claimed.body["requestId"]);
    const { body } = await world.call("GET", `${pathOf[kind]}/${requestId}`);
    assert.equal(body["businessWalletAddress"], business.address);
    assert.equal(body["status"], "pending_approval");
    assert.deepEqual(claimed.body, { offerId, requestId, expiresAt: body["expiresAt"] });
    assert.equal(Number(body["expiresAt"]) - Number(body["createdAt"]), 86_400);
    const shown = await show(made);
    assert.deepEqual(shown.body, {
      ...made.body,
      status: "CLAIMED",
      businessWalletAddress: business.address,
      requestId,
    });
    for (const name of business.members)
      assert.equal((await world.findVote(name, requestId)).kind, `${kind}_request`);
    assert.deepEqual(reasonOf(await cancel(made)), [409, "offer_not_open"]);
    await end(kind, claimed);
  });

function checkLink(kind: Kind, made: { link: string; offerId: string; expiresAt: number }): void {
  const link = parseLink(made.link);
  assert.ok(!("refused" in link));
  const parameters = new URLSearchParams(made.link.slice(made.link.indexOf("?")));
  assert.equal(parameters.get("type"), "callback");
  assert.equal(parameters.get("dl"), String(made.expiresAt));
  if (kind === "data") {
    assert.equal(link.action, "request");
    assert.deepEqual([parameters.get("attr"), parameters.get("id")], ["business", made.offerId]);
    assert.ok(parameters.has("from"));
  } else {
    assert.equal(link.action, "sign");
    assert.equal(parameters.get("data"), hashMessage(someText.message));
  }
}

for (const kind of kinds) {
  await test(`a ${kind} offer has one link, however often it is asked for under its key`, async () => {
    const body = { ...bodyOf[kind], ...unfitOf[kind] };
    const none = await world.call("POST", `${pathOf[kind]}/offers`, { body });
    assert.deepEqual(reasonOf(none), [400, "idempotency_key_required"]);
    const key = `offer-${kind}`;
    const [made, again] = [await offer(kind, { key }), await offer(kind, { key })];
    assert.deepEqual([made.status, again.status], [201, 200]);
    assert.deepEqual(again.body, made.body);
    const other = await offer(kind, { key, changed: { purpose: "Something else entirely" } });
    assert.deepEqual(reasonOf(other), [409, "idempotency_key_conflict"]);
    const fresh = await offer(kind);
    assert.notEqual(fresh.body["link"], made.body["link"]);
    const { rows } = await kept(String(made.body["offerId"]), connectionOf(made));
    assert.equal(rows, 0, "the token is in no row");
  });

  await test(`only a voting member claims a ${kind} offer, for itself and for its own business`, async () => {
    const made = await offer(kind);
    const own = await world.found({
      members: ["dora", "emil"],
      observers: ["emil"],
      name: "Beobachtet AG",
    });
    const sandbox = await world.found({
      members: ["dora"],
      name: "Probe AG",
      environment: "sandbox",
    });
    const { address } = world.person("alice");
    for (const answer of [
      await claim("mallory", made),
      await claim("emil", made, { business: own }),
      await claim("dora", made, { business: sandbox }),
      await claim("dora", made, { business: own, changed: { svcID: address } }),
      await claim("dora", made, { changed: { business: stranger } }),
    ])
      assert.deepEqual(reasonOf(answer), [403, "not_a_member"]);
    for (const member of ["svcID", "business"]) {
      const { error } = (await claim("alice", made, { changed: { [member]: "nothing" } })).body;
      assert.match(String(error?.message), RegExp(`^Invalid Request: ${member} must be an`));
    }
    const path = `${connectionOf(made)}/claim`;
    const body = { svcID: address, business: business.address };
    const anonymous = await world.call("POST", path, { apiKey: null, body });
    assert.deepEqual(reasonOf(anonymous), [401, "wallet_session_required"]);
    const more = await world.walletCall("alice", "POST", path, { body: { ...body, more: 1 } });
    assert.deepEqual(reasonOf(more), [400, "invalid_request"]);
    assert.equal((await show(made)).body["status"], "OPEN");
    await end(kind, await claim("alice", made));
  });

  await test(`a ${kind} offer is claimed once; the same claim again gets the same request`, async () => {
    const made = await offer(kind);
    const twin = await world.found({ name: "Zwilling AG" });
    const claims = await Promise.all(
      [business, twin, business, twin].map(async (each) =>
        claim("alice", made, { business: each }),
      ),
    );
    const taken = claims.filter(({ status }) => status === 200);
    assert.deepEqual(taken.length, 2);
    assert.deepEqual(taken[0]?.body, taken[1]?.body);
    for (const answer of claims.filter(({ status }) => status !== 200))
      assert.deepEqual(
        reasonOf(answer),
        // One of these businesses has no record of the field that is asked for.
        answer.status === 422 ? [422, "field_not_available"] : [409, "offer_not_open"],
      );
    if (taken[0] !== undefined) await end(kind, taken[0]);
  });

  await test(`a member that lost the answer to its claim of a ${kind} offer gets it by the same link, and no other member or business does`, async () => {
    const made = await offer(kind);
    const twin = await world.found({ name: "Doppel AG" });
    const path = `${world.baseUrl}${connectionOf(made)}/open`;
    const headers = { "content-type": "application/json" };
    const open = async () => fetch(path, { method: "POST", headers, body: "{}" });
    const object = await (await open()).text();
    const claimed = await claim("alice", made);
    assert.equal(await (await open()).text(), object);
    for (let repeat = 1; repeat <= 2; repeat += 1) {
      const repeated = await claim("alice", made);
      assert.deepEqual([repeated.status, repeated.body], [200, claimed.body]);
    }
    assert.deepEqual(reasonOf(await claim("bob", made)), [409, "offer_not_open"]);
    const other = await claim("alice", made, { business: twin });
    assert.deepEqual(reasonOf(other), [409, "offer_not_open"]);
    await end(kind, claimed);
    assert.deepEqual((await claim("alice", made)).body, claimed.body, "though it has ended");
    await world.advance(Number(made.body["expiresAt"]) - ctx.clock.now() + 1);
    assert.equal((await open()).status, 409);
  });

  await test(`a ${kind} offer ends after 30 minutes, or after what was asked for, at most an hour`, async () => {
    for (const [offerExpiresInSeconds, window] of [
      [undefined, 1800],
      [1, 300],
      [3600, 3600],
      [86_400, 3600],
    ] as const) {
      const from = ctx.clock.now() + window;
      const made = await offer(kind, { changed: { offerExpiresInSeconds } });
      const until = ctx.clock.now() + window;
      const expiresAt = Number(made.body["expiresAt"]);
      assert.ok(expiresAt >= from && expiresAt <= until, `${expiresAt}`);
      // Twenty seconds short, for the run time of the test itself.
      await world.advance(expiresAt - ctx.clock.now() - 20);
      assert.equal((await show(made)).body["status"], "OPEN");
      await world.advance(21);
      assert.equal((await show(made)).body["status"], "EXPIRED");
      assert.deepEqual(reasonOf(await claim("alice", made)), [409, "offer_not_open"]);
      assert.deepEqual(reasonOf(await cancel(made)), [409, "offer_not_open"]);
    }
  });

  await test(`the time to vote on a ${kind} offer begins with its claim`, async () => {
    const made = await offer(kind);
    await world.advance(1700);
    const from = ctx.clock.now() + 86_400;
    const claimed = await claim("alice", made);
    const ends = Number(claimed.body["expiresAt"]);
    assert.ok(ends >= from, `${ends}`);
    await end(kind, claimed);
  });

  await test(`a cancelled ${kind} offer is claimed by nobody`, async () => {
    const made = await offer(kind);
    const cancelled = await cancel(made);
    assert.deepEqual(cancelled.body, { ...made.body, status: "CANCELLED" });
    assert.deepEqual(reasonOf(await claim("alice", made)), [409, "offer_not_open"]);
    const opened = await world.call("POST", `${connectionOf(made)}/open`, {
      apiKey: null,
      body: {},
    });
    assert.deepEqual(reasonOf(opened), [409, "offer_not_open"]);
    assert.deepEqual(reasonOf(await cancel(made)), [409, "offer_not_open"]);
  });

  await test(`a ${kind} offer needs an endpoint, active or in quarantine`, async () => {
    const { apiKey } = await otherMerchant({ hasEndpoint: false });
    for (const changed of [{}, unfitOf[kind]])
      assert.deepEqual(reasonOf(await offer(kind, { apiKey, changed })), [
        409,
        "no_webhook_endpoint",
      ]);
    await quarantine(apiKey);
    const made = await offer(kind, { apiKey });
    assert.equal(made.status, 201);
    const claimed = await claim("alice", made);
    await end(kind, claimed, apiKey);
  });

  await test(`a ${kind} offer is seen by its client domain alone`, async () => {
    const made = await offer(kind);
    const { apiKey } = await otherMerchant();
    assert.deepEqual(reasonOf(await show(made, apiKey)), [404, "offer_not_found"]);
    assert.deepEqual(reasonOf(await cancel(made, apiKey)), [404, "offer_not_found"]);
    await cancel(made);
  });

  await test(`a ${kind} offer keeps its link, though what was asked is forgotten a day after its end`, async () => {
    const made = await offer(kind);
    const isKept = async (): Promise<boolean | undefined> => {
      await purgeOffers(ctx);
      await untilWritersEnd(ctx.db);
      const [row] = await ctx.db.query<{ isKept: boolean }>({
        name: "",
        text: `select coalesce(request_sealed::text, request_object) is not null as "isKept" from kyb_offer where id = $1`,
        values: [made.body["offerId"]],
      });
      return row?.isKept;
    };
    await world.advance(1800 + 86_400 - 60);
    assert.equal(await isKept(), true);
    await world.advance(61);
    assert.equal(await isKept(), false);
    assert.deepEqual((await show(made)).body, { ...made.body, status: "EXPIRED" });
  });

  await test(`the conn of a ${kind} offer says who asks, and takes nothing but a claim`, async () => {
    const made = await offer(kind);
    const path = connectionOf(made);
    const open = async (): Promise<string> => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${world.baseUrl}${path}/open`, {
        method: "POST",
        headers,
        body: "{}",
      });
      assert.equal(answer.headers.get("content-type"), "application/jwt");
      return answer.text();
    };
    const object = await open();
    assert.equal(requestObjectHash(await open()), requestObjectHash(object), "made once");
    const claims = JSON.parse(
      Buffer.from(object.split(".")[1] ?? "", "base64url").toString(),
    ) as Record<string, unknown>;
    assert.equal(claims["id"], made.body["offerId"]);
    assert.equal(claims["purpose"], bodyOf[kind].purpose);
    assert.equal(claims["exp"], made.body["expiresAt"]);
    for (const body of [{}, { error: "access_denied" }, { svcID: stranger, signature: "0x00" }]) {
      const answer = await world.call("POST", path, { apiKey: null, body });
      assert.equal(answer.body.error?.reason, "unsupported");
    }
    assert.equal((await show(made)).body["status"], "OPEN");
    const forged = `${path.slice(0, -4)}AAAA`;
    const refused = await world.call("POST", `${forged}/open`, { apiKey: null, body: {} });
    assert.deepEqual(reasonOf(refused), [404, "offer_not_found"]);
    await cancel(made);
  });

  await test(`an organization that lost its entitlement gets no request from its ${kind} offers`, async () => {
    const merchant = await otherMerchant();
    const { apiKey } = merchant;
    const made = await offer(kind, { apiKey });
    const entitlement = kind === "data" ? "kyb:data-request" : "kyb:signature";
    const reason = kind === "data" ? "kyb_not_entitled" : "kyb_signature_not_entitled";
    await grant(merchant, entitlement, false);
    assert.deepEqual(reasonOf(await claim("alice", made)), [403, reason]);
    await grant(merchant, entitlement, true);
    await end(kind, await claim("alice", made), apiKey);
  });
}

/** Looks for the token of a link in everything that is kept of its offer. */
async function kept(id: string, path: string): Promise<{ rows: number }> {
  const token = path.split("/").at(-1) ?? "";
  const [row] = await ctx.db.query<{ rows: number }>({
    name: "",
    text: `select count(*) as rows from kyb_offer where id = $1 and row_to_json(kyb_offer)::text like $2`,
    values: [id, `%${token.split(".")[1] ?? ""}%`],
  });
  return row ?? { rows: -1 };
}

/** Gives the merchant an endpoint that answers 410, and waits for its quarantine. */
async function quarantine(apiKey: string): Promise<void> {
  await using gone = await openReceiver();
  gone.setStatus(410);
  const path = "/api/v1/kyb/webhook-endpoint";
  gone.trust((await world.call("PUT", path, { apiKey, body: { url: gone.url } })).body["secret"]);
  await world.call("POST", `${path}/test`, { apiKey });
  await world.until("the quarantine", async () => {
    const { body } = await world.call("GET", path, { apiKey });
    return body["active"] === false ? true : null;
  });
}

await test("personal data is gated when it is offered, and again when it is claimed", async () => {
  const merchant = await otherMerchant();
  const { apiKey } = merchant;
  const made = await offer("data", { apiKey });
  await grant(merchant, "kyb:pii", false);
  assert.deepEqual(reasonOf(await claim("alice", made)), [403, "pii_not_entitled"]);
  await world.until("the key is told", async () => {
    const [status, reason] = reasonOf(await offer("data", { apiKey }));
    return status === 403 && reason === "pii_not_entitled" ? true : null;
  });
  assert.equal((await show(made, apiKey)).body["status"], "OPEN");
  // A sole proprietor's company data are personal, and only the claim shows which business it is.
  const fields = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };
  const plain = await offer("data", { apiKey, changed: fields });
  const sole = await world.found({ members: ["solo"], name: "Muster Einzelfirma" });
  await world.issueRecord(sole.address, [
    { field: "BUSINESS_LEGAL_NAME", data: "Muster" },
    { field: "BUSINESS_COMPANY_TYPE", data: "SOLE_PROPRIETOR" },
  ]);
  const refused = await claim("solo", plain, { business: sole });
  assert.deepEqual(reasonOf(refused), [403, "pii_not_entitled"]);
  await end("data", await claim("alice", plain), apiKey);
});

await test("money is kept back when the offer is claimed; the member learns no balance", async () => {
  const poor = await otherMerchant({ money: 0n });
  const made = await offer("data", { apiKey: poor.apiKey });
  assert.equal(made.status, 201, "an offer costs nothing");
  const none = await claim("alice", made);
  assert.deepEqual(reasonOf(none), [402, "no_credit_account"]);
  assert.equal(none.body.error?.details, undefined);
  const money = { organizationId: poor.organizationId, environment: "live", amountRappen: 100n };
  await topUp(ctx, money, "test");
  const short = await claim("alice", made);
  assert.deepEqual(reasonOf(short), [402, "insufficient_credit"]);
  assert.equal(short.body.error?.details, undefined);
  assert.equal((await show(made, poor.apiKey)).body["status"], "OPEN", "it may be claimed yet");
  await topUp(ctx, { ...money, amountRappen: 1000n }, "test");
  await end("data", await claim("alice", made), poor.apiKey);
});

await test("a claim is refused where a request would be", async () => {
  const held = await offer("data");
  const open = await world.ask();
  const conflict = await claim("alice", held);
  assert.deepEqual(reasonOf(conflict), [409, "request_already_open"]);
  await world.call("POST", `${requestsPath}/${String(open.body["requestId"])}/cancel`);
  const poor = await world.found({ members: ["alice"], name: "Leer AG" });
  const missing = await claim("alice", held, { business: poor });
  assert.deepEqual(reasonOf(missing), [422, "field_not_available"]);
  const doubtful = await world.found({
    members: ["alice"],
    name: "Fraglich AG",
    isVerified: false,
  });
  for (const kind of kinds)
    assert.deepEqual(reasonOf(await claim("alice", await offer(kind), { business: doubtful })), [
      422,
      "business_not_verified",
    ]);
  await end("data", await claim("alice", held));
});

await test("what is offered is checked when it is offered", async () => {
  const rows: [Kind, [number, string], Record<string, unknown>][] = [
    ["data", [422, "unknown_field"], unfitOf.data],
    ["data", [400, "malformed_request"], { fields: [] }],
    ["data", [400, "malformed_request"], { businessWalletAddress: business.address }],
    ["data", [400, "malformed_request"], { purpose: "short" }],
    ["signature", [400, "malformed_request"], { purpose: "short" }],
    ["signature", [400, "malformed_request"], { businessWalletAddress: business.address }],
    ["signature", [400, "malformed_request"], { messageKind: "HTML" }],
    ["signature", [400, "malformed_request"], { message: "" }],
    ["signature", [422, "document_refused"], unfitOf.signature],
  ];
  for (const [kind, expected, changed] of rows)
    assert.deepEqual(reasonOf(await offer(kind, { changed })), expected, JSON.stringify(changed));
});

await test("all members scan at one instant: one of them takes the offer, and their business is asked once", async () => {
  const made = await offer("signature");
  const crowd = await Promise.all(
    ["alice", "bob", "carol"].flatMap((name) =>
      Array.from({ length: 17 }, async () => untilAvailable(async () => claim(name, made))),
    ),
  );
  const taken = crowd.filter(({ status }) => status === 200);
  assert.equal(taken.length, 17, "one member took it, however often it said so");
  assert.equal(new Set(taken.map(({ body }) => body["requestId"])).size, 1);
  for (const answer of crowd.filter(({ status }) => status !== 200))
    assert.deepEqual(reasonOf(answer), [409, "offer_not_open"]);
  const [first] = taken;
  if (first !== undefined) await end("signature", first);
});

// The merchant SDK against the service: every method, once at least, and every verifier on what came of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type AnyKybEvent,
  type ChainAnchors,
  type KybEvent,
  MerchantError,
  openKyb,
  type ReleasedField,
  verifyAttestation,
  verifyBusinessSignature,
  verifyCompanyProof,
  verifyKybWebhook,
  verifyWalletChange,
  type WalletChangedEvent,
} from "@svc/merchant";
import { buyPackage } from "../../service/src/accounts/index.ts";
import { listIssuers } from "../../service/src/credentials/index.ts";
import { type DataWorld, openDataWorld, someRequest } from "../kyb-data-world.ts";
import { openReceiver, type Receiver } from "../kyb-receiver.ts";

const purpose = "To open an account for the company";
const text = { messageKind: "TEXT", message: "We accept the terms.", purpose } as const;
const called = new Set<string>();
const secrets: string[] = [];
let world: DataWorld;
let receiver: Receiver;
let kyb: ReturnType<typeof openKyb>;
let anchors: ChainAnchors;
let fields: ReleasedField[] = [];
let requestId = "";

before(async () => {
  world = await openDataWorld();
  receiver = await openReceiver();
  const opened = openKyb({ issuer: world.baseUrl, apiKey: world.apiKey });
  kyb = new Proxy(opened, {
    get: (methods, name, of) => {
      called.add(String(name));
      return Reflect.get(methods, name, of) as unknown;
    },
  });
  const { chainId, contracts, node } = world.ctx.chain;
  anchors = {
    client: {
      request: async ({ method, params }) => node.request(method, (params ?? []) as unknown[]),
    },
    chainId,
    registry: contracts.registry,
    issuers: (await listIssuers(world.ctx))
      .filter(({ name }) => name === "Register AG")
      .map(({ address }) => address),
    now: world.ctx.clock.now(),
  };
});
after(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const checks = () => {
  const { baseUrl: issuer, clientDomainId, ctx } = world;
  return { issuer, clientDomainId, now: ctx.clock.now() };
};

/** Every event that came, verified as a merchant does. */
const received = (): AnyKybEvent[] =>
  receiver.received.map(({ headers, body }) =>
    verifyKybWebhook({ headers, rawBody: Buffer.from(body), secrets, now: world.ctx.clock.now() }),
  );

async function arrival<T extends AnyKybEvent>(is: (event: AnyKybEvent) => event is T): Promise<T> {
  return world.until(
    "the event arrives",
    async () => received().find((event) => is(event)) ?? null,
  );
}

const endOf =
  (id: string) =>
  (event: AnyKybEvent): event is KybEvent =>
    "requestId" in event && event.requestId === id && event.seq > 1;

const isMove = (event: AnyKybEvent): event is WalletChangedEvent =>
  event.event === "kyb.business.wallet_address_changed";

async function refusalOf(work: Promise<unknown>): Promise<string | undefined> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof MerchantError);
  return error.reason;
}

test("an endpoint is registered and tested, held in quarantine and taken out of it, and its secret changed", async () => {
  const { secret } = await kyb.registerEndpoint(receiver.url);
  secrets.push(secret);
  receiver.setStatus(410);
  await receiver.arrivalOf(await kyb.testEndpoint());
  await world.until("it is in quarantine", async () => {
    const { active } = await kyb.endpoint();
    return active ? null : true;
  });
  receiver.setStatus(200);
  assert.equal((await kyb.reactivate()).active, true);
  assert.equal(await refusalOf(kyb.reactivate()), "endpoint_not_quarantined");
  const rotated = await kyb.rotateSecret();
  assert.ok(rotated.secret !== undefined && rotated.secret !== secret);
  const eventId = await kyb.testEndpoint();
  await receiver.arrivalOf(eventId);
  secrets.unshift(rotated.secret);
  const tested = received().find((event) => event.eventId === eventId);
  assert.ok(tested?.event === "unknown" && tested.name === "kyb.endpoint.test");
});

test("a business is looked up, and what its fields cost", async () => {
  const { address, members } = world.business;
  const standing = await kyb.status(address);
  assert.deepEqual([standing.status, standing.verified], ["active", true]);
  assert.ok(!("domain" in standing), "none is attested");
  const rules = await kyb.rules(address);
  assert.equal(rules.memberCount, members.length);
  assert.equal(rules.governanceRules.length, 2);
  const roster = await kyb.members(address);
  assert.ok(roster.members.every(({ name }) => name === undefined));
  const prices = new Map((await kyb.pricing()).fields.map((field) => [field.name, field.cents]));
  const { optionalFields, fields: required } = someRequest;
  const quote = await kyb.quote({ fields: required, optionalFields, business: address });
  assert.equal(quote.totalCents, 750);
  assert.ok(quote.lines.every(({ field, cents }) => prices.get(field) === cents));
  assert.equal((await kyb.billing()).availableChf, 100);
});

test("what a business releases is delivered, verified, proved on chain, and holds", async () => {
  const { address } = world.business;
  const once = { idempotencyKey: "order-4711" };
  const asked = await kyb.requestData({ business: address, ...someRequest }, once);
  ({ requestId } = asked);
  assert.deepEqual(await kyb.requestData({ business: address, ...someRequest }, once), asked);
  for (const name of ["alice", "bob"]) await world.voteAs(name, requestId);
  const event = await arrival(endOf(requestId));
  assert.equal(event.event, "kyb.data_request.released");
  const { attestation = "" } = event;
  const verified = await verifyAttestation(attestation, { ...checks(), event });
  ({ fields } = verified);
  assert.equal(fields.length, 3);
  const { attestation: again } = await kyb.release(requestId);
  assert.equal(again, attestation);
  assert.equal((await kyb.dataRequest(requestId)).status, "released");
  const { items } = await kyb.dataRequests({ status: "released", limit: 1 });
  assert.deepEqual(
    items.map((each) => each.requestId),
    [requestId],
  );

  const proofs = await kyb.proofs(requestId);
  assert.equal(proofs.length, fields.length);
  const now = world.ctx.clock.now();
  for (const proof of proofs) {
    const field = fields.find(({ hash }) => hash === proof.leaf);
    assert.ok(field !== undefined);
    const given = { business: address, field };
    const { proved } = await verifyCompanyProof(proof, given, { ...anchors, now });
    assert.deepEqual(
      proved.map(({ fact }) => fact),
      ["attested", "value", "live"],
    );
    const changed = { ...field, value: `${field.value}.` };
    const refused = verifyCompanyProof(proof, { ...given, field: changed }, { ...anchors, now });
    assert.equal(await refusalOf(refused), "commitment");
  }
  const { valid, invalid } = await kyb.valid({ business: address, fields });
  assert.deepEqual([valid.length, invalid], [3, []]);
  const [charge, ...others] = (await kyb.charges()).items;
  assert.deepEqual([charge?.requestId, charge?.totalCents, others], [requestId, 500, []]);
  assert.ok((await kyb.members(address)).members.every(({ name }) => name !== undefined));
});

test("what is spent is what the charges say and what packages cost", async () => {
  const { ctx, clientDomainId } = world;
  const given = { clientDomainId, name: "Age", fields: null, transfers: 1, priceRappen: 1250n };
  for (let count = 1; count <= 2; count += 1) await buyPackage(ctx, given, "test");
  const { spentChf, packagesChf } = await kyb.billing();
  assert.deepEqual([spentChf, packagesChf], [30, 25]);
});

test("what was missed is listed after a sequence, with its attempts, and sent again", async () => {
  const [event, ...others] = await kyb.events("data-requests", requestId, { after: 1 });
  assert.deepEqual([event?.seq, others], [2, []]);
  assert.equal(event?.content?.eventId, event?.eventId);
  const attempts = await world.until("the attempt is noted", async () => {
    const found = await kyb.deliveries("data-requests", requestId, { after: 1 });
    return found.length > 0 ? found : null;
  });
  const [attempt] = attempts;
  assert.deepEqual([attempt?.outcome, attempt?.status], ["delivered", 200]);
  const count = receiver.received.length;
  assert.equal(await kyb.redeliver("data-requests", requestId, event?.eventId), 1);
  await world.until("it comes again", async () => (receiver.received.length > count ? true : null));
  const [first, second] = receiver.received.filter(
    ({ headers }) => headers["svc-event-id"] === event?.eventId,
  );
  assert.equal(second?.body, first?.body);
});

test("whatever the client domain is told is listed, and one event is sent again", async () => {
  const { items } = await kyb.allEvents({ type: "kyb.endpoint.test", status: "delivered" });
  const [tested] = items;
  assert.ok(tested?.content?.event === "unknown");
  assert.equal(tested.streamId, tested.content.streamId);
  assert.equal((await kyb.allEvents({ limit: 1 })).items[0]?.streamId, requestId);
  const count = receiver.received.length;
  const tried = await kyb.eventDeliveries(tested.eventId);
  assert.equal(tried.items.at(-1)?.outcome, "delivered");
  assert.equal(await kyb.redeliverEvent(tested.eventId), 1);
  await world.until("it comes again", async () => (receiver.received.length > count ? true : null));
  assert.equal(await refusalOf(kyb.redeliverEvent("01J")), "event_not_found");
});

test("a business signs, and a node of the chain says so", async () => {
  const { address: business } = world.business;
  const asked = await kyb.requestSignature({ business, ...text }, { idempotencyKey: "terms-1" });
  for (const name of ["alice", "bob"]) await world.voteAs(name, asked.requestId);
  const event = await arrival(endOf(asked.requestId));
  assert.equal(event.event, "kyb.signature_request.signed");
  const { signature, digest } = await kyb.signature(asked.requestId);
  assert.deepEqual([signature, digest], [event.data["signature"], asked.digest]);
  const { message } = text;
  await verifyBusinessSignature(signature, { message }, { ...anchors, business });
  const other = verifyBusinessSignature(signature, { message: "No." }, { ...anchors, business });
  assert.equal(await refusalOf(other), "contract");
  assert.equal((await kyb.signatureRequest(asked.requestId)).status, "signed");
  const { items } = await kyb.signatureRequests({ status: "signed" });
  assert.equal(items.length, 1);
});

test("requests and offers are taken back", async () => {
  const { address: business } = world.business;
  const data = await kyb.requestData({ business, ...someRequest });
  assert.equal((await kyb.cancelDataRequest(data.requestId)).status, "cancelled");
  const signature = await kyb.requestSignature(
    { business, ...text },
    { idempotencyKey: "terms-2" },
  );
  const cancelled = await kyb.cancelSignatureRequest(signature.requestId);
  assert.equal(cancelled.status, "cancelled");
  const offers = [
    await kyb.offerData({ fields: someRequest.fields, purpose }, { idempotencyKey: "till-1" }),
    await kyb.offerSignature(text, { idempotencyKey: "till-2" }),
  ];
  for (const { offerId, link } of offers) {
    assert.equal((await kyb.offer(offerId)).link, link);
    assert.equal((await kyb.cancelOffer(offerId)).status, "CANCELLED");
    assert.equal(await refusalOf(kyb.cancelOffer(offerId)), "offer_not_open");
  }
});

test("a business that moves is followed by its attestation alone", async () => {
  const { address } = world.business;
  const next = await world.found({ members: ["alice"], name: "Muster Neu AG" });
  const request = { operation: "moveTo", successor: next.address };
  await world.govern("alice", request, { voters: ["alice", "bob"] });
  const event = await arrival(isMove);
  assert.equal(event.business, address);
  const change = await verifyWalletChange(event.attestation, { ...checks(), event });
  assert.deepEqual([change.business, change.newBusiness], [address, next.address]);
  const asFor = { ...checks(), clientDomainId: "0190c0de-0000-7000-8000-000000000000" };
  assert.equal(await refusalOf(verifyWalletChange(event.attestation, asFor)), "aud");
  const { status, successor } = await kyb.status(address);
  assert.deepEqual([status, successor], ["moved", next.address]);
});

test("every method of the SDK for businesses is called here", () => {
  const names = Object.keys(openKyb({ issuer: world.baseUrl, apiKey: world.apiKey }));
  assert.deepEqual(called, new Set(names));
});

// The events of a client domain, whatever they tell of: which of them there are, how they stand, and one of them again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiKey, createDomain, setEntitlement } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { logInFor } from "../business-login.ts";
import { openSignatureWorld } from "../kyb-signature-world.ts";
import { reasonOf } from "../kyb-world.ts";

await using world = await openSignatureWorld();
const { ctx, receiver } = world;
const eventsPath = "/api/v1/kyb/events";
const testType = "kyb.endpoint.test";
const moveType = "kyb.business.wallet_address_changed";

const list = async (query = "", apiKey = world.apiKey) => {
  const { status, body } = await world.call("GET", `${eventsPath}?${query}`, { apiKey });
  assert.equal(status, 200);
  return {
    items: body["items"] as Record<string, unknown>[],
    nextCursor: body["nextCursor"] as string | undefined,
  };
};
const deliveriesOf = async (id: unknown, apiKey = world.apiKey) =>
  world.call("GET", `${eventsPath}/${String(id)}/deliveries`, { apiKey });
const redeliver = async (id: unknown, options: { apiKey?: string; headers?: object } = {}) =>
  world.call("POST", `${eventsPath}/${String(id)}/redeliver`, {
    apiKey: options.apiKey ?? world.apiKey,
    headers: { ...options.headers },
  });

async function testEvent(): Promise<string> {
  const { body } = await world.call("POST", "/api/v1/kyb/webhook-endpoint/test");
  return String(body["eventId"]);
}

await test("a move whose delivery was given up is listed, and arrives when it is sent again", async () => {
  const business = await world.found({ members: ["kim"] });
  const next = await world.found({ members: ["kim"], name: "Muster Neu AG" });
  await logInFor(world, { business, voters: ["kim"] });
  receiver.setStatus(500);
  const request = { operation: "moveTo", successor: next.address };
  await world.govern("kim", request, { business: business.address });
  // As if twelve attempts had been made before.
  const givenUp = await world.until("it is given up", async () => {
    await ctx.db.query(
      sql`update webhook_delivery set step = 12, due_at_ms = 0 where lease is null and step < 12`,
    );
    const [found] = (await list(`type=${moveType}&status=undelivered`)).items;
    return found !== undefined && found["nextAttemptAt"] === undefined && found["attempts"] !== 0
      ? found
      : null;
  });
  receiver.setStatus(200);
  const { eventId, body } = givenUp;
  const told = JSON.parse(String(body)) as { stream_id: string; data: Record<string, unknown> };
  assert.equal(told.data["new_business_wallet_address"], next.address);
  assert.equal(givenUp["streamId"], told.stream_id);
  const headers = { "idempotency-key": "again-1" };
  for (let call = 0; call < 2; call += 1)
    assert.deepEqual((await redeliver(eventId, { headers })).body, { count: 1 });
  await world.until("it is delivered", async () => {
    const [found] = (await list(`type=${moveType}&status=delivered`)).items;
    return found?.["eventId"] === eventId ? found : null;
  });
  const bodies = receiver.received
    .filter((each) => each.headers["svc-event-id"] === eventId)
    .map((each) => each.body);
  assert.ok(bodies.length > 1);
  assert.ok(bodies.every((each) => each === body));
  assert.deepEqual((await list(`type=${moveType}&status=undelivered`)).items, []);
});

await test("events of every kind are listed newest first and page by page", async () => {
  const sent = [await testEvent(), await testEvent(), await testEvent()];
  await world.begin();
  const { items: all } = await list("limit=100");
  const ids = all.map(({ eventId }) => String(eventId));
  assert.deepEqual(ids, ids.toSorted().toReversed());
  const kinds = new Set(all.map(({ event }) => event));
  assert.deepEqual(kinds, new Set(["kyb.signature_request.pending_approval", testType, moveType]));
  const paged: unknown[] = [];
  for (let at: string | null = ""; at !== null;) {
    const { items, nextCursor } = await list(`limit=2${at}`);
    assert.ok(items.length === 2 || nextCursor === undefined);
    paged.push(...items.map(({ eventId }) => eventId));
    at = nextCursor === undefined ? null : `&cursor=${nextCursor}`;
  }
  assert.deepEqual(paged, ids);
  const tests = await list(`type=${testType}`);
  assert.deepEqual(
    tests.items.map(({ eventId, event }) => [eventId, event]),
    sent.toReversed().map((id) => [id, testType]),
  );
  for (const query of ["type=kyb.nothing", "status=gone", "cursor=1", "limit=0", "more=1"])
    assert.deepEqual(reasonOf(await world.call("GET", `${eventsPath}?${query}`)), [
      400,
      "malformed_request",
    ]);
});

await test("a page ends where its bodies are 8 MiB together, and the next goes on there", async () => {
  const ids = [await testEvent(), await testEvent(), await testEvent()];
  await world.until("they are delivered", async () =>
    (await list(`type=${testType}&status=undelivered`)).items.length === 0 ? true : null,
  );
  const fill = async (bytes: number): Promise<unknown> =>
    ctx.db.query(
      sql`update webhook_event set body = repeat('x', ${bytes}) where id = any(${ids}::text[])`,
    );
  await fill(5 * 1024 * 1024);
  const listed: unknown[] = [];
  let at = "";
  for (const _ of ids) {
    const { items, nextCursor } = await list(`type=${testType}${at}`);
    listed.push(...items.map(({ eventId }) => eventId));
    if (listed.length < ids.length) assert.equal(items.length, 1);
    at = `&cursor=${String(nextCursor)}`;
  }
  assert.deepEqual(listed.slice(0, ids.length), ids.toReversed());
  // Other tests list them too.
  await fill(5);
});

await test("an event exists only for its own client domain, and an event of a request only for keys that may make such requests", async () => {
  const { organizationId } = world;
  const domain = { organizationId, domain: "sister.example", environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(ctx, domain, "test");
  const { key: sister } = await createApiKey(ctx, { clientDomainId, name: "Sister" }, "test");
  const id = await testEvent();
  const [pending] = (await list("type=kyb.signature_request.pending_approval")).items;
  assert.ok(pending);
  for (const apiKey of [sister, await world.otherMerchant()]) {
    assert.deepEqual(await list("", apiKey), { items: [], nextCursor: undefined });
    assert.deepEqual(reasonOf(await redeliver(id, { apiKey })), [404, "event_not_found"]);
    assert.deepEqual(reasonOf(await deliveriesOf(id, apiKey)), [404, "event_not_found"]);
  }
  for (const unknown of ["01J", `${id}0`, "evt_1"])
    assert.deepEqual(reasonOf(await redeliver(unknown)), [404, "event_not_found"]);
  await setEntitlement(
    ctx,
    { organizationId, entitlement: "kyb:signature", isGranted: false },
    "test",
  );
  await world.until("it is withdrawn", async () => {
    const { items } = await list("limit=100");
    return items.some(({ event }) => String(event).startsWith("kyb.signature")) ? null : true;
  });
  assert.deepEqual((await list("type=kyb.signature_request.pending_approval")).items, []);
  assert.deepEqual(reasonOf(await redeliver(pending["eventId"])), [404, "event_not_found"]);
  assert.deepEqual(reasonOf(await deliveriesOf(pending["eventId"])), [404, "event_not_found"]);
  assert.equal((await redeliver(id)).status, 200);
});

await test("what was purged is listed without its body, and cannot be sent again", async () => {
  const id = await testEvent();
  await world.until("it is delivered", async () =>
    (await list(`type=${testType}&status=undelivered`)).items.length === 0 ? true : null,
  );
  await ctx.db.query(sql`update webhook_event set body = null, purge_at = null where id = ${id}`);
  const [event] = (await list(`type=${testType}`)).items;
  assert.deepEqual([event?.["eventId"], event?.["body"]], [id, undefined]);
  assert.deepEqual(reasonOf(await redeliver(id)), [410, "payload_expired"]);
});

await test("each attempt at a test event is listed with its outcome, and none at another", async () => {
  const untried = await testEvent();
  receiver.setStatus(503);
  const id = await testEvent();
  const attemptsAt = async (event: string, query = "") => {
    const { body } = await world.call("GET", `${eventsPath}/${event}/deliveries${query}`);
    return body as { items?: Record<string, unknown>[]; nextCursor?: string };
  };
  const triedOnce = async (): Promise<true | null> =>
    (await attemptsAt(id)).items?.length === 1 ? true : null;
  await world.until("it is tried", triedOnce);
  receiver.setStatus(200);
  await redeliver(id);
  const { items } = await world.until("it is delivered", async () => {
    const page = await attemptsAt(id);
    return page.items?.length === 2 ? page : null;
  });
  assert.deepEqual(
    items?.map(({ eventId, event, outcome, status }) => [eventId, event, outcome, status]),
    [
      [id, testType, "refused", 503],
      [id, testType, "delivered", 200],
    ],
  );
  const first = await attemptsAt(id, "?limit=1");
  assert.deepEqual(first.items, items?.slice(0, 1));
  const second = await attemptsAt(id, `?limit=1&cursor=${first.nextCursor}`);
  assert.deepEqual(second, { items: items?.slice(1) });
  const ids = (await attemptsAt(untried)).items?.map(({ eventId }) => eventId);
  assert.deepEqual(new Set(ids), new Set([untried]));
  const wrong = await world.call("GET", `${eventsPath}/${id}/deliveries?cursor=x`);
  assert.deepEqual(reasonOf(wrong), [400, "malformed_request"]);
});

// The KYB webhook endpoint over HTTP, as merchants manage it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { createApiKey, createDomain, setEntitlement } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { type Answer, type KybWorld, openKybWorld, reasonOf } from "../kyb-world.ts";
import { addMerchant } from "../kyb-merchant.ts";
import { openReceiver, type Receiver } from "../kyb-receiver.ts";
import { openRawConnection } from "../raw-connection.ts";

const path = "/api/v1/kyb/webhook-endpoint";

let world: KybWorld;
let receiver: Receiver;
before(async () => {
  world = await openKybWorld();
  receiver = await openReceiver();
});
after(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

test("before registration there is no endpoint, and nothing can be done with it", async () => {
  assert.deepEqual(reasonOf(await world.call("GET", path)), [404, "endpoint_not_found"]);
  for (const verb of ["rotate-secret", "reactivate", "test"])
    assert.deepEqual(reasonOf(await world.call("POST", `${path}/${verb}`)), [
      409,
      "no_webhook_endpoint",
    ]);
});

test("PUT answers the record with its secret, once; GET shows the rest", async () => {
  const { status, body } = await world.call("PUT", path, { body: { url: receiver.url } });
  assert.equal(status, 200);
  const { secret, ...rest } = body;
  assert.match(String(secret), /^[0-9a-f]{64}$/);
  receiver.trust(secret);
  assert.deepEqual(rest, {
    url: receiver.url,
    secretVersion: 1,
    active: true,
    createdAt: rest["createdAt"],
  });
  const shown = await world.call("GET", path);
  assert.deepEqual(shown.body, rest);
  assert.equal(shown.headers.get("cache-control"), "no-store");
});

test("a test event arrives signed, and its stream has no gap", async () => {
  const replaced = await world.call("PUT", path, { body: { url: receiver.url } });
  const secret = String(replaced.body["secret"]);
  receiver.trust(secret);
  const sent = [await world.call("POST", `${path}/test`), await world.call("POST", `${path}/test`)];
  for (const { status, body } of sent) {
    assert.equal(status, 201);
    const request = await receiver.arrivalOf(String(body["eventId"]));
    new Webhook(secret, { format: "raw" }).verify(request.body, request.headers);
    assert.match(String(request.headers["svc-kyb-signature"]), /^t=\d+,v1=[0-9a-f]{64},kv=2$/);
  }
  const events = receiver.received.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  assert.deepEqual(
    events.map(({ event, seq, livemode, api_version: version }) => [event, seq, livemode, version]),
    [1, 2].map((seq) => ["kyb.endpoint.test", seq, true, "v1"]),
  );
});

test("nothing sent is a missing body, whatever type a client names for it", async () => {
  const types = [
    "application/x-www-form-urlencoded",
    "text/plain; charset=utf-8",
    "application/json",
  ];
  for (const type of types) {
    const headers = { authorization: world.apiKey, "content-type": type };
    const sent = { method: "POST", headers, body: "" };
    const answer = await fetch(`${world.baseUrl}${path}/reactivate`, sent);
    const { error } = (await answer.json()) as Answer["body"];
    assert.deepEqual([answer.status, error?.reason], [409, "endpoint_not_quarantined"], type);
  }
});

test("nothing sent is a missing body also without a length beside its type", async () => {
  for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/json"]) {
    const connection = await openRawConnection(world.baseUrl);
    const lines = [
      `POST ${path}/reactivate HTTP/1.1`,
      "host: localhost",
      "connection: close",
      `authorization: ${world.apiKey}`,
      `content-type: ${type}`,
    ];
    connection.send([...lines, "", ""].join("\r\n"));
    assert.match(await connection.all, /^HTTP\/1\.1 409 [^]*endpoint_not_quarantined/, type);
  }
});

test("a rotation answers a new secret; repeated under its Idempotency-Key the same one", async () => {
  const headers = { "idempotency-key": "rotation-1" };
  const first = await world.call("POST", `${path}/rotate-secret`, { headers });
  const again = await world.call("POST", `${path}/rotate-secret`, { headers });
  assert.equal(first.body["secretVersion"], 3);
  receiver.trust(first.body["secret"]);
  assert.deepEqual(again.body, first.body);
  const other = { headers, body: { immediate: true } };
  const conflict = await world.call("POST", `${path}/rotate-secret`, other);
  assert.deepEqual(reasonOf(conflict), [409, "idempotency_key_conflict"]);
  const elsewhere = await world.call("POST", `${path}/test`, { headers });
  assert.deepEqual(reasonOf(elsewhere), [409, "idempotency_key_conflict"]);
  // Neither call has a body: what differs is the route.
  assert.match(String(elsewhere.body.error?.message), /was used for another call$/);
  const last = await world.call("POST", `${path}/rotate-secret`, { body: { immediate: true } });
  assert.equal(last.body["secretVersion"], 4);
  receiver.trust(last.body["secret"]);
});

/** @returns the record of the endpoint in quarantine */
async function putIntoQuarantine(): Promise<Answer["body"]> {
  receiver.setStatus(410);
  await world.call("POST", `${path}/test`);
  return world.until("the quarantine", async () => {
    const { body } = await world.call("GET", path);
    return body["active"] === false ? body : null;
  });
}

test("a receiver that is gone puts it into quarantine; it goes on when it is reactivated", async () => {
  const active = await world.call("POST", `${path}/reactivate`);
  assert.deepEqual(reasonOf(active), [409, "endpoint_not_quarantined"]);
  const shown = await putIntoQuarantine();
  assert.ok(!("secret" in shown));
  receiver.setStatus(200);
  const held = await world.call("POST", `${path}/test`);
  const reactivated = await world.call("POST", `${path}/reactivate`);
  assert.deepEqual([reactivated.status, reactivated.body["active"]], [200, true]);
  assert.ok(!("secret" in reactivated.body));
  await receiver.arrivalOf(String(held.body["eventId"]));
});

test("the audit trail has each change with the key that made it, and no address that may hold a secret", async () => {
  const { ctx, clientDomainId } = world;
  const { id, key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "Second" }, "test");
  const move = { apiKey, body: { url: receiver.url }, headers: { "idempotency-key": "move-1" } };
  receiver.trust((await world.call("PUT", path, move)).body["secret"]);
  await world.call("PUT", path, move);
  await world.call("PUT", path, { apiKey, body: { url: "https://127.0.0.1/hook" } });
  await putIntoQuarantine();
  receiver.setStatus(200);
  for (const verb of ["reactivate", "reactivate", "rotate-secret", "test"])
    await world.call("POST", `${path}/${verb}`, { apiKey });
  const entries = await ctx.db.query(
    sql`select action, subject, details from audit_entry where actor = ${`api-key:${id}`} order by id`,
  );
  const entry = { subject: clientDomainId, details: {} };
  assert.deepEqual(entries, [
    {
      ...entry,
      action: "webhook-endpoint.register",
      details: { host: new URL(receiver.url).host },
    },
    { ...entry, action: "webhook-endpoint.reactivate" },
    { ...entry, action: "webhook-endpoint.rotate-secret" },
  ]);
});

test("an address that no webhook may go to is refused, and the endpoint stays as it was", async () => {
  const { body: shown } = await world.call("GET", path);
  for (const url of [
    "http://example.com/hook",
    "https://user@example.com/hook",
    "https://example.com/hook#part",
    "https://127.0.0.1/hook",
    "https://[::1]/hook",
    "https://localhost/hook",
    "https://example.com:80/hook",
    "https://printer.local/hook",
    "ftp://example.com/hook",
    `${world.baseUrl}/hook`,
    "example.com",
    "",
    `https://example.com/${"x".repeat(2048)}`,
    // Percent-encoded, as it would be stored and called, it has more than 2,048 characters.
    `https://example.com/${"\u00e9".repeat(350)}`,
  ])
    assert.deepEqual(
      reasonOf(await world.call("PUT", path, { body: { url } })),
      [400, "malformed_request"],
      url,
    );
  for (const body of [undefined, [], {}, { url: 7 }, { url: receiver.url, secret: "mine" }])
    assert.equal((await world.call("PUT", path, { body })).status, 400);
  assert.deepEqual((await world.call("GET", path)).body, shown);
});

test("an address is kept in the form that was checked and is called, however it was spelled", async () => {
  const { apiKey } = await addMerchant(world, { entitlements: ["kyb:data-request"] });
  const url = "HTTPS://Hooks.Example.COM:443/a/../in?name=\u00e9";
  const kept = "https://hooks.example.com/in?name=%C3%A9";
  const put = await world.call("PUT", path, { apiKey, body: { url } });
  const shown = await world.call("GET", path, { apiKey });
  assert.deepEqual([put.body["url"], shown.body["url"]], [kept, kept]);
});

test("an endpoint belongs to one client domain, and seeing it takes no more than kyb:read", async () => {
  const { ctx, organizationId } = world;
  for (const entitlement of ["kyb:data-request", "kyb:pii", "kyb:signature"] as const)
    await setEntitlement(ctx, { organizationId, entitlement, isGranted: false }, "test");
  await world.until("the entitlements are gone", async () =>
    (await world.call("GET", "/api/v1/kyb/signature-requests")).status === 403 ? true : null,
  );
  assert.equal((await world.call("GET", path)).status, 200);
  const domain = { organizationId, domain: "localhost", environment: "sandbox" } as const;
  const { id: clientDomainId } = await createDomain(ctx, domain, "test");
  const sandbox = await createApiKey(ctx, { clientDomainId, name: "Other" }, "test");
  const other = await world.call("GET", path, { apiKey: sandbox.key });
  assert.deepEqual(reasonOf(other), [404, "endpoint_not_found"]);
});

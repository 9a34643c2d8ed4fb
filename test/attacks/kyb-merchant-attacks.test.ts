// What a merchant with every entitlement can try on businesses, and what still holds after a right ends midway: an
// API key, an entitlement, a client.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  createApiKey,
  disableClient,
  limitCallbackHosts,
  revokeApiKey,
  setEntitlement,
} from "../../service/src/accounts/index.ts";
import { actAs, openBusinessPage } from "../business-login.ts";
import { openDataWorld } from "../kyb-data-world.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";
import { isWithin } from "../patience.ts";

await using world = await openDataWorld({ environment: { DATABASE_CONNECTIONS: "3" } });
const { ctx, business, clientDomainId, organizationId } = world;
const endpointPath = "/api/v1/kyb/webhook-endpoint";

async function askSignature(path = signaturesPath, apiKey = world.apiKey): Promise<Answer> {
  const headers = { "idempotency-key": randomBytes(8).toString("hex") };
  const named = path === signaturesPath ? { businessWalletAddress: business.address } : {};
  return world.call("POST", path, { apiKey, headers, body: { ...someText, ...named } });
}

async function untilSigned(id: string): Promise<void> {
  await world.until("it is signed", async () => {
    const { body } = await world.call("GET", `${signaturesPath}/${id}`);
    return body["status"] === "signed" ? true : null;
  });
}

/** Grants or withdraws the right to ask for signatures. */
async function entitle(isGranted: boolean): Promise<void> {
  await setEntitlement(ctx, { organizationId, entitlement: "kyb:signature", isGranted }, "test");
  await world.until("its keys know", async () => {
    const { status } = await world.call("GET", signaturesPath);
    return (status === 200) === isGranted ? true : null;
  });
}

/** The path below which a member takes an offer. */
function claimPathOf({ body }: Answer): string {
  const link = String(body["link"]);
  const connection = new URLSearchParams(link.slice(link.indexOf("?"))).get("conn") ?? "";
  return `${new URL(connection).pathname}/claim`;
}

await test("cancels as many as there are connections end at once, for nobody waits for a second one", async () => {
  for (const kind of ["data-requests", "signature-requests"]) {
    const cancel = async (): Promise<void> => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, async () =>
          world.call("POST", `/api/v1/kyb/${kind}/unknown/cancel`, { body: {} }),
        ),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([404]), kind);
    };
    assert.ok(await isWithin(8_000, cancel), kind);
  }
});

const hostileIds = ["%00", "%E2%80%AE", "..%2f..", "%F0%9F%92%A9", "__proto__", "'; drop", "a%0Ab"];

await test("no id of an unusual spelling is a fault of ours", async () => {
  const gets = hostileIds.flatMap((id) => [
    `/api/v1/kyb/data-requests/${id}`,
    `/api/v1/kyb/data-requests/${id}/events`,
    `/api/v1/kyb/data-requests/${id}/deliveries`,
    `/api/v1/kyb/data-requests/${id}/release`,
    `/api/v1/kyb/data-requests/${id}/proofs`,
    `/api/v1/kyb/data-requests?cursor=${id}`,
    `/api/v1/kyb/data-requests?status=${id}`,
    `/api/v1/kyb/signature-requests/${id}`,
    `/api/v1/kyb/signature-requests/${id}/signature`,
    `/api/v1/kyb/signature-requests?cursor=${id}`,
    `/api/v1/kyb/offers/${id}`,
    `/api/v1/kyb/status/${id}`,
    `/api/v1/kyb/members/${id}`,
    `/api/v1/kyb/billing/charges?cursor=${id}`,
    `/api/v1/kyb/events?cursor=${id}`,
  ]);
  const posts = hostileIds.flatMap((id) => [
    `/api/v1/kyb/data-requests/${id}/cancel`,
    `/api/v1/kyb/data-requests/${id}/redeliver`,
    `/api/v1/kyb/signature-requests/${id}/cancel`,
    `/api/v1/kyb/offers/${id}/cancel`,
    `/api/v1/kyb/events/${id}/redeliver`,
    `/w/f/${id}/open`,
  ]);
  for (const path of gets) {
    const { status } = await world.call("GET", path);
    assert.ok(status < 500, `${path}: ${status}`);
  }
  for (const path of posts) {
    const { status } = await world.call("POST", path, { body: {} });
    assert.ok(status >= 400 && status < 500, `${path}: ${status}`);
  }
  for (const id of hostileIds)
    for (const [path, body] of [
      [`/w/votes/${id}`, { vote: "reject", signature: `0x${"11".repeat(65)}` }],
      [`/w/businesses/${id}/proposals`, { operation: "startRemoval", member: business.address }],
      [`/w/businesses/${business.address}/proposals/${id}/retract`, {}],
      [`/w/f/${id}/claim`, { svcID: world.person("alice").address, business: business.address }],
      [`/w/businesses/${id}/block`, { requestId: "\u0000" }],
    ] as const) {
      const { status } = await world.walletCall("alice", "POST", path, { body });
      assert.ok(status >= 400 && status < 500, `${path}: ${status}`);
    }
});

await test("what a revoked key made stays, the address of events too, until that is set again", async () => {
  const { key, id } = await createApiKey(ctx, { clientDomainId, name: "Stolen" }, "test");
  await limitCallbackHosts(ctx, { id: clientDomainId, hosts: ["hooks.example.com"] }, "test");
  const move = async (apiKey: string, url: string): Promise<Answer> =>
    world.call("PUT", endpointPath, { apiKey, body: { url } });
  const { body: before } = await world.call("GET", endpointPath);
  assert.equal((await move(key, "http://localhost:4997/thief")).status, 200);
  const offer = await askSignature(`${signaturesPath}/offers`, key);
  const asked = await world.ask({}, { apiKey: key });
  await revokeApiKey(ctx, id, "test");
  const refused = await world.until("the key is refused", async () => {
    const answer = await world.call("GET", endpointPath, { apiKey: key });
    return answer.status === 200 ? null : answer;
  });
  assert.deepEqual(reasonOf(refused), [401, "apikey_invalid"]);
  const requestId = String(asked.body["requestId"]);
  for (const name of ["alice", "bob"]) await world.voteAs(name, requestId);
  await world.waitFor(requestId, "released");
  const claim = { svcID: world.person("bob").address, business: business.address };
  const taken = await world.walletCall("bob", "POST", claimPathOf(offer), { body: claim });
  assert.equal(taken.status, 200);
  const { body: moved } = await world.call("GET", endpointPath);
  assert.equal(moved["url"], "http://localhost:4997/thief");
  assert.equal(moved["secretVersion"], Number(before["secretVersion"]) + 1);
  const restored = await move(world.apiKey, String(before["url"]));
  assert.deepEqual([restored.status, restored.body["url"]], [200, before["url"]]);
});

await test("a signature that was asked for is made though kyb:signature was withdrawn, and none is asked for anew", async () => {
  const asked = await askSignature();
  await entitle(false);
  assert.deepEqual(reasonOf(await askSignature()), [403, "kyb_signature_not_entitled"]);
  const id = String(asked.body["requestId"]);
  for (const name of ["alice", "bob"]) assert.equal((await world.voteAs(name, id)).status, 200);
  await entitle(true);
  await untilSigned(id);
});

await test("members may decide on a login whose client was disabled meanwhile, and its browser gets no code", async () => {
  const client = await world.addClient();
  const page = await openBusinessPage(world, { client });
  const { response } = await actAs(world, page, { name: "alice" });
  assert.deepEqual(await response.json(), { status: "waiting" });
  await disableClient(ctx, client.id, "test");
  assert.equal((await world.voteAs("bob", page.loginId)).body["status"], "approved");
  const finished = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/finish`, {
    method: "POST",
    redirect: "manual",
    headers: { origin: world.baseUrl },
  });
  assert.deepEqual([finished.status, finished.headers.get("location")], [409, null]);
});

await test("texts and typed data of an unusual kind are refused or taken, and are never a fault of ours", async () => {
  const businessWalletAddress = business.address;
  const asked: { fields: Record<string, unknown>; statuses: number[] }[] = [];
  const purpose = "To agree on the terms";
  const text = (message: string, changed = {}) => ({
    messageKind: "TEXT",
    message,
    purpose,
    ...changed,
  });
  const data = (value: unknown, type = "uint256", changed: Record<string, unknown> = {}) => ({
    messageKind: "TYPED_DATA",
    purpose,
    typedData: {
      domain: { name: "Shop" },
      types: { Terms: [{ name: "x", type }] },
      primaryType: "Terms",
      message: { x: value },
      ...changed,
    },
  });
  for (const character of ["\u202e", "\u2066", "\u200f", "\u0000", "\ud800", "\u2028", "\u0085"]) {
    asked.push({ fields: text(`Terms ${character}`), statuses: [400] });
    asked.push({
      fields: text("Terms", { purpose: `To agree on ${character} terms` }),
      statuses: [400],
    });
    asked.push({ fields: data(`a${character}`, "string"), statuses: [400] });
    asked.push({
      fields: data("a", "string", { domain: { name: `Shop${character}` } }),
      statuses: [400],
    });
    asked.push({
      fields: data("a", "string", {
        types: { [`Terms${character}`]: [] },
        primaryType: `Terms${character}`,
      }),
      statuses: [400],
    });
  }
  asked.push(
    { fields: data(9_007_199_254_740_994), statuses: [400] },
    { fields: data(Number.MAX_VALUE), statuses: [400] },
    { fields: data(-1), statuses: [400] },
    {
      fields: data("1", "uint256", {
        types: { Terms: [{ name: "toString", type: "string" }] },
        message: {},
      }),
      statuses: [400],
    },
    { fields: data("1", "constructor"), statuses: [400] },
    { fields: data("1", "uint256", { primaryType: "hasOwnProperty" }), statuses: [400] },
    { fields: data("1", "uint256", { domain: { name: "svc" } }), statuses: [422] },
    { fields: data("1", "uint256", { domain: { chainId: 1 } }), statuses: [422] },
    { fields: data("1", "uint256", { domain: { chainId: null } }), statuses: [400, 422] },
    {
      fields: data("1", "uint256", { domain: { name: "Shop", verifyingContract: "0x00" } }),
      statuses: [400],
    },
    { fields: data("1", "uint256", { salt: 1 }), statuses: [400, 201] },
    { fields: text("x".repeat(4097)), statuses: [400] },
    { fields: text("ä".repeat(2049)), statuses: [400] },
    { fields: text("", {}), statuses: [400] },
    { fields: text("Terms", { expiresInSeconds: 1.5 }), statuses: [400] },
    { fields: text("Terms", { expiresInSeconds: 1e300 }), statuses: [400, 201] },
    { fields: text("Terms", { extra: 1 }), statuses: [400] },
  );
  let count = 0;
  for (const { fields, statuses } of asked) {
    count += 1;
    const { status, body } = await world.call("POST", "/api/v1/kyb/signature-requests", {
      headers: { "idempotency-key": `k${count}` },
      body: { businessWalletAddress, ...fields },
    });
    assert.ok(
      statuses.includes(status),
      `${JSON.stringify(fields)}: ${status} ${JSON.stringify(body)}`,
    );
  }
  const raw = [
    `{"businessWalletAddress":"${businessWalletAddress}","messageKind":"TYPED_DATA","purpose":"${purpose}","typedData":{"domain":{"name":"a"},"types":{"A":[{"name":"x","type":"uint8"}]},"primaryType":"A","message":{"x":1,"__proto__":{"y":1}}}}`,
    `{"businessWalletAddress":"${businessWalletAddress}","messageKind":"TYPED_DATA","purpose":"${purpose}","typedData":{"domain":{"name":"a"},"types":{"A":[{"name":"x","type":"uint8"}],"__proto__":[]},"primaryType":"A","message":{"x":1}}}`,
    `{"businessWalletAddress":"${businessWalletAddress}","messageKind":"TYPED_DATA","purpose":"${purpose}","typedData":{"domain":{"name":"a"},"types":{"A":[{"name":"x","type":"uint8"}]},"primaryType":"A","message":{"x":1,"constructor":{"prototype":{"y":1}}}}}`,
    `{"businessWalletAddress":"${businessWalletAddress}","messageKind":"TEXT","message":"a","messageKind":"TYPED_DATA","purpose":"${purpose}"}`,
    `${"[".repeat(100)}${"]".repeat(100)}`,
    "null",
    "",
    "{",
  ];
  for (const body of raw) {
    const answer = await fetch(`${world.baseUrl}/api/v1/kyb/signature-requests`, {
      method: "POST",
      headers: {
        authorization: world.apiKey,
        "content-type": "application/json",
        "idempotency-key": `raw${raw.indexOf(body)}`,
      },
      body,
    });
    assert.equal(answer.status, 400, `${body}: ${await answer.text()}`);
  }
});

await test("what members have approved cannot be cancelled while the chain records it", async () => {
  for (let times = 0; times < 3; times += 1) {
    const id = String((await askSignature()).body["requestId"]);
    for (const name of ["alice", "bob"]) await world.voteAs(name, id);
    const cancelled = await world.call("POST", `${signaturesPath}/${id}/cancel`);
    assert.equal(cancelled.body.error?.reason, "request_not_open");
    await untilSigned(id);
  }
});

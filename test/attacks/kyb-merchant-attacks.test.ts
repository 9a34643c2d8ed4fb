// What a merchant with every entitlement can try on businesses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DataWorld, openDataWorld } from "../kyb-data-world.ts";
import { openSignatureWorld, signaturesPath } from "../kyb-signature-world.ts";

let shared: DataWorld;
before(async () => {
  shared = await openDataWorld();
});
after(async () => shared[Symbol.asyncDispose]());

test("cancels as many as there are connections end at once, for nobody waits for a second one", async () => {
  await using world = await openDataWorld({ environment: { DATABASE_CONNECTIONS: "3" } });
  for (const kind of ["data-requests", "signature-requests"]) {
    const beganMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 12 }, async () =>
        world.call("POST", `/api/v1/kyb/${kind}/unknown/cancel`, { body: {} }),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([404]), kind);
    assert.ok(performance.now() - beganMs < 8_000, kind);
  }
});

const hostileIds = ["%00", "%E2%80%AE", "..%2f..", "%F0%9F%92%A9", "__proto__", "'; drop", "a%0Ab"];

test("no id of an unusual spelling is a fault of ours", async () => {
  const world = shared;
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
      [
        `/w/businesses/${id}/proposals`,
        { operation: "startRemoval", member: world.business.address },
      ],
      [`/w/businesses/${world.business.address}/proposals/${id}/retract`, {}],
      [
        `/w/f/${id}/claim`,
        { svcID: world.person("alice").address, business: world.business.address },
      ],
      [`/w/businesses/${id}/block`, { requestId: "\u0000" }],
    ] as const) {
      const { status } = await world.walletCall("alice", "POST", path, { body });
      assert.ok(status >= 400 && status < 500, `${path}: ${status}`);
    }
});

test("texts and typed data of an unusual kind are refused or taken, and are never a fault of ours", async () => {
  const world = shared;
  const businessWalletAddress = world.business.address;
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

test("what members have approved cannot be cancelled while the chain records it", async () => {
  await using world = await openSignatureWorld();
  for (let times = 0; times < 3; times += 1) {
    const id = await world.begin({ message: `Terms ${times}` });
    for (const name of ["alice", "bob"]) await world.voteAs(name, id);
    const cancelled = await world.call("POST", `${signaturesPath}/${id}/cancel`);
    assert.equal(cancelled.body.error?.reason, "request_not_open");
    await world.reach(id, "signed");
  }
});

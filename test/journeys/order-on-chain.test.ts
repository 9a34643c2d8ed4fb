// An order over the whole service with its embedded chain: approved in the wallet, settled, confirmed, and its receipt
// verified by a merchant who asks nobody but the chain.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { verifyReceipt } from "@svc/merchant";
import type { Receipt } from "@svc/protocol";
import {
  concat,
  encodeAbiParameters,
  hashTypedData,
  type Hex,
  keccak256,
  parseAbiParameters,
  toBytes,
} from "viem";
import { buyPackage, createApiKey } from "../../service/src/accounts/index.ts";
import {
  getBuiltInIssuer,
  issueCredential,
  revokeCredential,
} from "../../service/src/credentials/index.ts";
import { findCredential } from "../../service/src/credentials/credential-store.ts";
import { announceInvalidated } from "../../service/src/kyc/index.ts";
import { runVerb } from "../operator-verbs.ts";
import { until } from "../patience.ts";
import { openWalletAt } from "../wallet-at.ts";
import { openWorld } from "../world.ts";

await using world = await openWorld({ CHAIN: "on", SETTLEMENT_WINDOW_SECONDS: "0" });
const { clientDomainId } = world;
const { ctx } = world.service;
const { key } = await createApiKey(ctx, { clientDomainId, name: "backend" }, "test");
const { kycPackage } = await buyPackage(
  ctx,
  { clientDomainId, name: "Dynamic", fields: null, transfers: 100, priceRappen: 0n },
  "test",
);
const issuer = await getBuiltInIssuer(ctx, "demo", "live");
const { wallet, address } = await openWalletAt(world);

async function ask<Data>(path: string, body?: object): Promise<Data> {
  const answer = await fetch(`${world.baseUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: key, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return (JSON.parse(text) as { data: Data }).data;
}

const { id: credentialId } = await issueCredential(ctx, issuer, {
  user: address,
  document: "CONTACT",
  fields: [{ field: "EMAIL", data: "alice@example.com" }],
  expiresAt: ctx.clock.now() + 365 * 86_400,
});
await until("the credential is attested", async () => {
  const credential = await findCredential(ctx.db, credentialId);
  return credential?.attestedAt ?? null;
});

const { link, referenceKey } = await ask<{ link: string; referenceKey: string }>(
  "/api/v2/kyc/qrcode",
  {
    user: address,
    sourceKey: kycPackage.sourceKey,
    callback: "http://localhost:4999/hook",
    expiration: ctx.clock.now() + 600,
    fields: ["EMAIL"],
  },
);
type Listed = { items: { scannedAt?: number }[] };
const beforeScan = await ask<Listed>("/api/v2/kyc/orders");
const approved = await wallet.approve(link);
assert.ok(approved.kind === "delivered" && approved.status === 200);
const { status } = await until("the order has ended", async () => {
  const order = await ask<{ status: string }>(`/api/v2/kyc/status?referenceKey=${referenceKey}`);
  return ["CONFIRMED", "FAILED"].includes(order.status) ? order : null;
});
const receipt = await ask<Record<string, unknown>>(
  `/api/v2/kyc/receipt?referenceKey=${referenceKey}`,
);
const anchors = {
  rpcUrl: `${world.baseUrl}/w/chain`,
  chainId: ctx.chain.chainId,
  registry: ctx.chain.contracts.registry,
  settlement: ctx.chain.contracts.settlement,
  operator: ctx.chain.operator,
  issuers: [issuer.address],
  now: ctx.clock.now() + 1,
};

await test("the list of orders says since when a wallet has an order", async () => {
  assert.equal(beforeScan.items[0]?.scannedAt, undefined);
  const { items } = await ask<Listed>("/api/v2/kyc/orders");
  assert.ok(Math.abs((items[0]?.scannedAt ?? 0) - ctx.clock.now()) < 60);
});

await test("an approved order is confirmed by the chain, with both hashes in its history", async () => {
  assert.equal(status, "CONFIRMED");
  const { allStatuses } = await ask<{ allStatuses: Record<string, unknown>[] }>(
    `/api/v2/kyc/all-statuses?referenceKey=${referenceKey}`,
  );
  assert.deepEqual(
    allStatuses.map((each) => each["status"]),
    ["PENDING", "INITIATING", "INITIATED", "CONFIRMING", "CONFIRMED"],
  );
  const hash = /^0x[0-9a-f]{64}$/;
  assert.match(String(allStatuses.at(-1)?.["initiatedTxHash"]), hash);
  assert.match(String(allStatuses.at(-1)?.["confirmTxHash"]), hash);
});

await test("the receipt is verified with the merchant's own anchors and the chain alone", async () => {
  const verified = await verifyReceipt(receipt, anchors);
  assert.equal(verified.user, address);
  const facts = verified.proved.map(({ fact }) => fact);
  for (const fact of ["consent", "attested", "live", "initiated", "confirmed"]) {
    assert.ok(facts.includes(fact as (typeof facts)[0]), fact);
  }
});

const hashOf = (text: string): Hex => keccak256(toBytes(text));
const climb = (leaf: Hex, proof: readonly Hex[]): Hex =>
  proof.reduce((a, b) => keccak256(concat(a < b ? [a, b] : [b, a])), leaf);

await test("the receipt can be recomputed as the reference says, with a library that is not ours", () => {
  const reference = readFileSync(new URL("../../docs/reference/kyc.md", import.meta.url), "utf8");
  const types = new Map(
    [...reference.matchAll(/["`](\w+)\(((?:\w+ \w+,?)+)\)["`]/g)].map(
      ([, name = "", members = ""]) => [name, members],
    ),
  );
  const encode = (name: string, values: readonly unknown[]): Hex => {
    const members = types.get(name) ?? "";
    const all = parseAbiParameters(`bytes32,${members}`);
    return keccak256(encodeAbiParameters(all, [hashOf(`${name}(${members})`), ...values] as never));
  };
  const { share, fields, user, attempt, salt, ...given } = receipt as unknown as Receipt;
  const leaves = fields.map(({ field, commitment, expiresAt }) =>
    keccak256(encode("Leaf", [user, hashOf(field), commitment, BigInt(expiresAt)])),
  );
  for (const [index, { root, proof }] of fields.entries())
    assert.equal(climb(leaves[index] ?? "0x", proof), root);
  assert.equal(
    share.data,
    keccak256(encodeAbiParameters(parseAbiParameters("bytes32[]"), [leaves])),
  );
  assert.equal(share.fields, hashOf(JSON.stringify(fields.map(({ field }) => field))));
  assert.equal(share.object, `0x${createHash("sha256").update(given.requestObject).digest("hex")}`);
  const consent = hashTypedData({
    domain: { name: "svc", version: "1" },
    types: {
      Share: (types.get("Share") ?? "").split(",").map((member) => {
        const [type = "", name = ""] = member.split(" ");
        return { name, type };
      }),
    },
    primaryType: "Share",
    message: { ...share, deadline: BigInt(share.deadline) },
  });
  const order = encode("Order", [`0x${given.referenceKey}`, attempt, salt]);
  for (const [phase, settled] of [
    [1, given.initiate],
    [2, given.confirm],
  ] as const) {
    const leaf = keccak256(encode("OrderLeaf", [phase, order, consent, share.data]));
    assert.equal(climb(leaf, settled?.proof ?? []), settled?.root);
  }
});

await test("a receipt against another contract, operator or issuer is refused", async () => {
  const stranger = `0x${"99".repeat(20)}`;
  for (const other of [
    { settlement: stranger },
    { registry: stranger },
    { operator: stranger },
    { issuers: [stranger] },
    { chainId: 1 },
  ]) {
    await assert.rejects(verifyReceipt(receipt, { ...anchors, ...other }));
  }
});

await test("the wallet that consented gets the same receipt", async () => {
  assert.deepEqual(await wallet.receipt(referenceKey), receipt);
});

await test("the heads of the audit trail that the batches anchored agree with the chain", async () => {
  // From another process, as an operator runs it beside the service.
  const settings = { DATA_DIR: ctx.config.dataDirectory, CHAIN: "on" };
  const [exitCode, said] = await runVerb({ ctx }, ["audit", "verify"], settings);
  assert.equal(exitCode, 0, said);
  const { anchored } = JSON.parse(said) as { anchored: { checked: number } };
  assert.ok(anchored.checked >= 1);
});

await test("the merchant is told when the delivered field no longer holds, and the receipt still proves the consent", async () => {
  const onInvalidated: typeof ctx.onInvalidated = async (tx, leaves) =>
    announceInvalidated(ctx, tx, leaves);
  await revokeCredential({ ...ctx, onInvalidated }, issuer, credentialId);
  const { items } = await ask<{ items: { event: string }[] }>(
    `/api/v2/kyc/events?referenceKey=${referenceKey}`,
  );
  assert.deepEqual(
    items.map(({ event }) => event),
    [
      "status.updated",
      "status.updated",
      "status.updated",
      "status.updated",
      "data.transferred",
      "status.updated",
      "data.invalidated",
    ],
  );
  const { proved } = await verifyReceipt(receipt, anchors);
  assert.ok(proved.some(({ fact }) => fact === "consent"));
});

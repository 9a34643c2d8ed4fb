// An order over the whole service with its embedded chain: approved in the wallet, settled, confirmed, and its receipt
// verified by a merchant who asks nobody but the chain.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { verifyReceipt } from "@svc/merchant";
import { hexOfBytes } from "@svc/protocol";
import { memoryStorage, openIdentity, openWallet } from "@svc/wallet";
import { buyPackage, createApiKey } from "../../service/src/accounts/index.ts";
import {
  getBuiltInIssuer,
  issueCredential,
  revokeCredential,
} from "../../service/src/credentials/index.ts";
import { findCredential } from "../../service/src/credentials/credential-store.ts";
import { runCommandLine } from "../../service/src/command-line/index.ts";
import { announceInvalidated } from "../../service/src/kyc/index.ts";
import { until } from "../patience.ts";
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
const identity = await openIdentity({
  kind: "private-key",
  privateKey: hexOfBytes(randomBytes(32)),
});
const wallet = openWallet({
  identity,
  storage: memoryStorage(),
  seededBrokers: [world.baseUrl],
  fetch,
  now: async () => ctx.clock.now(),
  random: (length) => new Uint8Array(randomBytes(length)),
});

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
  user: identity.address,
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
    user: identity.address,
    sourceKey: kycPackage.sourceKey,
    callback: "http://localhost:4999/hook",
    expiration: ctx.clock.now() + 600,
    fields: ["EMAIL"],
  },
);
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
  assert.equal(verified.user, identity.address);
  const facts = verified.proved.map(({ fact }) => fact);
  for (const fact of ["consent", "attested", "live", "initiated", "confirmed"]) {
    assert.ok(facts.includes(fact as (typeof facts)[0]), fact);
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
  const said: string[] = [];
  const { databaseUrl, dataDirectory } = ctx.config;
  const exitCode = await runCommandLine(["audit", "verify", "--json"], {
    out: (text) => said.push(text),
    err: (text) => said.push(text),
    environment: {
      DATABASE_URL: databaseUrl ?? "",
      DATA_DIR: dataDirectory,
      MASTER_KEY: "11".repeat(32),
      CHAIN: "on",
      LOG_LEVEL: "silent",
    },
  });
  assert.equal(exitCode, 0, said.join(""));
  const { anchored } = JSON.parse(said.join("")) as { anchored: { checked: number } };
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

// A verified field, checked by viem and the library of OpenZeppelin alone: nothing of ours takes part in the verdict.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import {
  type Address,
  createPublicClient,
  encodeAbiParameters,
  type Hex,
  http,
  keccak256,
  parseAbi,
  parseAbiParameters,
  stringToHex,
} from "viem";
import { openApiKeys } from "../../service/src/accounts/index.ts";
import { chainJobs, enqueueTransaction } from "../../service/src/chain/index.ts";
import { hasWaitingRoots } from "../../service/src/credentials/batch-store.ts";
import { sendToRegistry } from "../../service/src/credentials/batches.ts";
import { listOwnCredentials } from "../../service/src/credentials/collection.ts";
import {
  createIssuer,
  credentialFinalHandlers,
  distrustIssuer,
  getBuiltInIssuer,
  issueCredential,
  openCredentials,
  revokeCredential,
} from "../../service/src/credentials/index.ts";
import { loadRegistryCalls } from "../../service/src/credentials/registry-calls.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { startAnvil } from "../anvil.ts";
import { openInstallation } from "../chain-processes.ts";
import { until } from "../patience.ts";

await using anvil = await startAnvil();
await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });
await using settling = await installation.openProcess();
await using apiKeys = await openApiKeys(settling.ctx);
await using ctx = await openCredentials(
  { ...settling.ctx, apiKeys },
  {
    mayAsk: async () => true,
    listHandedOver: async () => [],
    onInvalidated: async () => undefined,
    holdCompany: async () => false,
    onCompanyRecord: async () => undefined,
    onCompanyRecordOver: async () => undefined,
  },
);
const issuer = await getBuiltInIssuer(ctx, "demo", "live");
const reader = createPublicClient({ transport: http(anvil.url) });
const registry = {
  address: ctx.chain.contracts.registry,
  abi: parseAbi([
    "function statusOf(address issuer, bytes32 root) view returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom)",
    "function isLive(address issuer, bytes32 root) view returns (bool)",
  ]),
};
const isLive = async (root: Hex): Promise<boolean> =>
  reader.readContract({ ...registry, functionName: "isLive", args: [issuer.address, root] });

/** What the jobs of a running service do, until nothing is left to do. */
async function work(): Promise<void> {
  const outbox = chainJobs(ctx, credentialFinalHandlers(ctx)).find(
    ({ name }) => name === "chain-outbox",
  );
  await until("nothing is left to do", async () => {
    await sendToRegistry(ctx);
    await outbox?.run(AbortSignal.any([]));
    installation.advance(2);
    return (await isWorkLeft()) ? null : true;
  });
}

/** Whether the jobs have work left, now or within a year. */
async function isWorkLeft(): Promise<boolean> {
  const { operator } = ctx.chain;
  if (await hasWaitingRoots(ctx.db, { now: ctx.clock.now() + 365 * 86_400, operator })) return true;
  const open = await ctx.db.query(
    sql`select from chain_transaction where status in ('queued', 'sent') limit 1`,
  );
  return open.length > 0;
}

/** The leaf, written after section 4 of the decisions alone. */
function leafOf(given: {
  user: Address;
  field: string;
  data: string;
  pepper: Hex;
  expiresAt: number;
}): Hex {
  const typeHash = keccak256(
    stringToHex("Leaf(address user,bytes32 field,bytes32 commitment,uint64 expiresAt)"),
  );
  const commitment = keccak256(
    encodeAbiParameters(parseAbiParameters("bytes32, bytes32"), [
      keccak256(stringToHex(given.data)),
      given.pepper,
    ]),
  );
  const words = encodeAbiParameters(
    parseAbiParameters("bytes32, address, bytes32, bytes32, uint64"),
    [
      typeHash,
      given.user,
      keccak256(stringToHex(given.field)),
      commitment,
      BigInt(given.expiresAt),
    ],
  );
  return keccak256(keccak256(words));
}

const user: Address = `0x${randomBytes(20).toString("hex")}`;
const { id, root } = await issueCredential(ctx, issuer, {
  user,
  document: "IDCARD",
  fields: [
    { field: "IDCARD_NAME", data: "Canary Name 4417" },
    { field: "IDCARD_DOB", data: "1990-05-17" },
  ],
  expiresAt: ctx.clock.now() + 365 * 86_400,
});

await test("a credential counts on chain and here once its root is attested, in the name of its issuer", async () => {
  assert.equal(await isLive(root), false);
  await work();
  assert.equal(await isLive(root), true);
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: 1 });
  assert.equal(items[0]?.status, "live");
});

await test("every field's proof is accepted by the library; another field, user, value or pepper is not", async () => {
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: 1 });
  const fields = items[0]?.fields ?? [];
  assert.equal(fields.length, 8);
  for (const { field, data = "", pepper = "0x", expiresAt, proof = [] } of fields) {
    const opening = { user, field, data, pepper, expiresAt };
    assert.ok(SimpleMerkleTree.verify(root, leafOf(opening), proof), field);
    const changed = [
      { ...opening, user: `0x${randomBytes(20).toString("hex")}` as const },
      { ...opening, field: "PASSPORT_DOB" },
      { ...opening, data: `${data}0` },
      { ...opening, pepper: `0x${randomBytes(32).toString("hex")}` as const },
      { ...opening, expiresAt: expiresAt + 1 },
    ];
    for (const other of changed) assert.ok(!SimpleMerkleTree.verify(root, leafOf(other), proof));
  }
});

await test("the chain holds neither user nor field name nor value", async () => {
  const latest = await reader.getBlockNumber();
  const blocks = await Promise.all(
    Array.from({ length: Number(latest) + 1 }, async (_, index) =>
      reader.getBlock({ blockNumber: BigInt(index), includeTransactions: true }),
    ),
  );
  const inputs = blocks.flatMap(({ transactions }) => transactions.map(({ input }) => input));
  assert.ok(inputs.some((input) => input.includes(root.slice(2))));
  const all = inputs.join("").toLowerCase();
  assert.ok(!all.includes(user.slice(2)));
  for (const text of ["Canary", "IDCARD", "1990-05-17"])
    assert.ok(!all.includes(Buffer.from(text).toString("hex")));
});

await test("a revocation and a distrust hold on chain too", async () => {
  await revokeCredential(ctx, issuer, id);
  await work();
  assert.equal(await isLive(root), false);
  const other = await issueCredential(ctx, issuer, {
    user,
    document: "CONTACT",
    fields: [{ field: "PHONE", data: "+41791234567" }],
    expiresAt: ctx.clock.now() + 365 * 86_400,
  });
  await work();
  assert.equal(await isLive(other.root), true);
  await distrustIssuer(ctx, { issuerId: issuer.id, from: 1 }, "test");
  await work();
  assert.equal(await isLive(other.root), false);
  const [attestedAt, , distrustedFrom] = await reader.readContract({
    ...registry,
    functionName: "statusOf",
    args: [issuer.address, other.root],
  });
  assert.ok(attestedAt > 0);
  assert.equal(distrustedFrom, 1);
});

await test("a distrust that the chain has already, or one from earlier on, is not sent", async () => {
  const known = await createIssuer(ctx, { name: "Known", environment: "live" }, "test");
  await work();
  const from = ctx.clock.now() - 60;
  const calls = await loadRegistryCalls();
  await ctx.db.transaction(async (tx) =>
    enqueueTransaction(ctx, tx, {
      kind: "test.distrust",
      subjectId: known.id,
      to: registry.address,
      data: calls.distrust(known.address, from),
    }),
  );
  await work();
  const sentOf = async (issuerId: string) =>
    ctx.db.query(sql`select subject_id from chain_transaction
      where kind = 'registry.distrust' and subject_id like ${`${issuerId}:%`}`);
  for (const time of [from + 30, from]) {
    await distrustIssuer(ctx, { issuerId: known.id, from: time }, "test");
    await work();
    installation.advance(3600);
    await work();
    assert.deepEqual(await sentOf(known.id), []);
  }
  await distrustIssuer(ctx, { issuerId: known.id, from: from - 30 }, "test");
  await work();
  assert.equal((await sentOf(known.id)).length, 1);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { settlement } from "@svc/contracts";
import { auditLeafOf, buildTree, type Hex32, hexOfBytes } from "@svc/protocol";
import { encodeEventTopics } from "viem";
import type { ChainContext, FinalTransaction } from "../chain/index.ts";
import { chainAll } from "../../../test/linked-audit.ts";
import { sql, type Statement } from "../platform/database/db.ts";
import { bufferOfHex, joinHashes, splitHashes } from "../platform/hex.ts";
import { verifyAnchors } from "./anchors.ts";
import { settleOrders } from "./settlement.ts";
import { openTestSettlement } from "../../../test/approved-orders.ts";

/** A fake chain with the transactions that were mined. */
function chainOf(
  mined: readonly (FinalTransaction & { root: Hex32 })[],
  base: ChainContext["chain"],
) {
  const node = {
    async request(method: string, [hash]: readonly unknown[]) {
      assert.equal(method, "eth_getTransactionReceipt");
      const found = mined.find((each) => each.hash === hash);
      if (found === undefined) return null;
      const eventName = found.kind === "kyc.initiate" ? "Initiated" : "Confirmed";
      const args = { operator: found.signer, root: found.root };
      const topics = encodeEventTopics({ abi: settlement.abi, eventName, args });
      return {
        logs: [{ address: base.contracts.settlement.toUpperCase().replace("X", "x"), topics }],
      };
    },
  };
  return { ...base, node } as unknown as ChainContext["chain"];
}

async function settleSome(world: Awaited<ReturnType<typeof openTestSettlement>>) {
  const { ctx } = world;
  const mined: (FinalTransaction & { root: Hex32 })[] = [];
  for (let round = 0; round < 3; round += 1) {
    await ctx.audit.record(ctx.db, { actor: "system", action: "test.run", subject: `${round}` });
    await chainAll(ctx);
    await world.approve(2);
    await world.closeBatch();
    const initiated = await world.mine();
    await settleOrders(ctx);
    for (const done of [...initiated, ...(await world.mine())]) {
      const [row] = await ctx.db.query<{ root: Hex32 }>(
        sql`select '0x' || encode(root, 'hex') as root from kyc_batch where id = ${done.subjectId}`,
      );
      mined.push({ ...done, root: row?.root ?? "0x" });
    }
  }
  return mined;
}

await using world = await openTestSettlement();
const { ctx } = world;
const mined = await settleSome(world);
const verify = async (given = mined) =>
  verifyAnchors({ db: ctx.db, chain: chainOf(given, ctx.chain) });
const kinds = ({ faults }: Awaited<ReturnType<typeof verifyAnchors>>) =>
  faults.map(({ kind }) => kind);

await test("heads that batches anchored agree with the audit chain and with the chain", async () => {
  const report = await verify();
  assert.deepEqual(report, { isIntact: true, checked: report.checked, faults: [] });
  assert.ok(report.checked >= 1);
});

await test("a root that the chain does not hold is reported", async () => {
  const { checked } = await verify();
  const everyOne = Array.from({ length: checked }, () => "not_on_chain");
  const otherRoots = mined.map((each) =>
    Object.assign({}, each, { root: `0x${"00".repeat(32)}` as const }),
  );
  assert.deepEqual(kinds(await verify(otherRoots)), everyOne);
  assert.deepEqual(kinds(await verify([])), everyOne);
  const signer = `0x${"0d".repeat(20)}` as const;
  const otherSigner = mined.map((each) => Object.assign({}, each, { signer }));
  assert.deepEqual(kinds(await verify(otherSigner)), everyOne, "nor what another account sent");
  const otherPhase = mined.map((each) =>
    Object.assign({}, each, {
      kind: each.kind === "kyc.initiate" ? "kyc.confirm" : "kyc.initiate",
    }),
  );
  assert.deepEqual(kinds(await verify(otherPhase)), everyOne, "nor what was said of another phase");
  const chain = chainOf(mined, ctx.chain);
  const contracts = { ...chain.contracts, settlement: `0x${"0e".repeat(20)}` as const };
  const elsewhere = await verifyAnchors({ db: ctx.db, chain: { ...chain, contracts } });
  assert.deepEqual(kinds(elsewhere), everyOne, "nor what another contract says");
});

const { checked } = await verify();
const each = (kind: string): string[] => Array.from({ length: checked }, () => kind);

await test("an audit chain that was truncated is reported, and one that was purged is not", async () => {
  const [first] = await ctx.db.query<{ end: number }>(
    sql`select min(audit_position) as end from kyc_batch`,
  );
  const end = first?.end ?? 0;
  const undone = new Error("taken back");
  const look = async (change: Statement, given = mined): Promise<string[]> => {
    let found: string[] = [];
    const changed = ctx.db.transaction(async (tx) => {
      await tx.query(change);
      found = kinds(
        await verifyAnchors({ db: tx as typeof ctx.db, chain: chainOf(given, ctx.chain) }),
      );
      throw undone;
    });
    await assert.rejects(changed, undone);
    return found;
  };
  const later = each("head_differs").slice(1);
  assert.deepEqual(await look(sql`delete from audit_link where position > ${end}`), later);
  const purge = sql`with gone as (delete from audit_link where position <= ${end})
    update audit_chain set checkpoint_position = ${end}`;
  assert.deepEqual(await look(purge), []);
  const kept = each("not_on_chain").slice(1);
  assert.deepEqual(await look(purge, []), kept, "nor is the chain asked for what was purged");
});

await test("an audit chain that was rebuilt is reported", async () => {
  await ctx.db.query(sql`update audit_link set hash = sha256(hash)`);
  const report = await verify();
  assert.ok(!report.isIntact);
  assert.deepEqual(kinds(report), each("head_differs"));
});

await test("a batch whose row names the rebuilt chain is reported, since its tree holds another head", async () => {
  await ctx.db.query(
    sql`update kyc_batch set audit_head = hash from audit_link where position = audit_position`,
  );
  assert.deepEqual(kinds(await verify()), each("batch_forged"));
});

await test("a batch that was rebuilt with the audit chain is reported, since another root is on chain", async () => {
  const batches = await ctx.db.query<{ id: string; head: Buffer; at: number; leaves: Buffer }>(sql`
    select id, audit_head as head, audit_position as at, leaves
    from kyc_batch join kyc_batch_leaves on batch_id = id`);
  const roots = new Map<string, Buffer>();
  for (const { id, head, at, leaves } of batches) {
    // The head is the last leaf.
    const orders = splitHashes(leaves).slice(0, -1);
    const rebuilt = [...orders, auditLeafOf({ head: hexOfBytes(head), position: at })];
    roots.set(id, bufferOfHex(buildTree(rebuilt).root));
    await ctx.db.query(
      sql`update kyc_batch_leaves set leaves = ${joinHashes(rebuilt)} where batch_id = ${id}`,
    );
  }
  assert.deepEqual(kinds(await verify()), each("batch_forged"), "its own root is another one too");
  for (const [id, root] of roots)
    await ctx.db.query(sql`update kyc_batch set root = ${root} where id = ${id}`);
  assert.deepEqual(kinds(await verify()), each("not_on_chain"));
});

await test("a batch whose tree was deleted is reported", async () => {
  await ctx.db.query(sql`delete from kyc_batch_leaves`);
  assert.deepEqual(kinds(await verify()), each("batch_forged"));
});

await test("every head is compared, and the first hundred faults are listed", async () => {
  await ctx.db.query(sql`
    insert into kyc_batch select copy.*
    from generate_series(1, 200) as n, (select * from kyc_batch order by audit_position desc limit 1) as b,
      jsonb_populate_record(null::kyc_batch, to_jsonb(b) || jsonb_build_object('id', gen_random_uuid(),
        'root', sha256(n::text::bytea), 'transaction_hash', sha256(n::text::bytea), 'audit_position', b.audit_position + n)) as copy`);
  const report = await verify();
  assert.deepEqual([report.checked, report.faults.length], [checked + 200, 100]);
});

await test("a batch whose transaction is not final anchors nothing", async () => {
  await using other = await openTestSettlement();
  const look = async () => verifyAnchors({ db: other.ctx.db, chain: chainOf([], ctx.chain) });
  const nothing = { isIntact: true, checked: 0, faults: [] };
  await other.approve(1);
  await other.closeBatch();
  assert.deepEqual(await look(), nothing);
  await other.mine("reverted");
  assert.deepEqual(await look(), nothing);
});

await test("an unreachable node is an error, not a fault of the anchors", async () => {
  await using other = await openTestSettlement();
  await settleSome(other);
  const node = { request: async () => Promise.reject(new Error("away")) };
  const chain = { ...other.ctx.chain, node } as unknown as ChainContext["chain"];
  await assert.rejects(verifyAnchors({ db: other.ctx.db, chain }), /away/);
});

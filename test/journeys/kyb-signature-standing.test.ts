// What a business may still sign, and withdraw, as its standing changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { hashMessage, toFunctionSelector, toHex } from "viem";
import { readHead } from "../../service/src/chain/index.ts";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { mendRecordings } from "../../service/src/kyb/request/signature-request-ballots.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { actsOn } from "../audited-acts.ts";
import { reasonOf } from "../kyb-world.ts";
import { openSignatureWorld, signaturesPath } from "../kyb-signature-world.ts";
import { untilBlockedBehind } from "../lock-waits.ts";

await using world = await openSignatureWorld();
const { ctx, reader } = world;

const accepts = async (address: Address, message: string): Promise<boolean> =>
  reader.verifyMessage({ address, message, signature: `0x01${hashMessage(message).slice(2)}` });

await test("no vote signs for a business that nobody vouches for, though its requests have not ended yet", async () => {
  const unverified = await world.found({ members: ["nora"], name: "Ohne Akte AG" });
  const { address } = unverified;
  const id = await world.begin({ businessWalletAddress: address });
  const item = await world.findVote("nora", id);
  const members = world.rosterOf(["nora", "oona"]);
  const path = `/w/businesses/${address}/proposals`;
  const body = { operation: "changeCharter", members };
  const proposed = await world.walletCall("nora", "POST", path, { body });
  await ctx.db.query(sql`update business set verified_at = null where address = ${address}`);
  assert.deepEqual(reasonOf(await world.voteAs("nora", id, { item })), [409, "ballot_over"]);
  const decided = await world.voteAs("nora", String(proposed.body["proposalId"]));
  assert.equal(decided.body["status"], "approved", "its members go on deciding about themselves");
});

await test("of a business that has moved nobody is shown, or decides, a request that has not ended yet", async () => {
  const { address } = world.business;
  const id = await world.begin();
  const item = await world.findVote("alice", id);
  await ctx.db.query(sql`update business set status = 'moved' where address = ${address}`);
  assert.ok((await world.inboxOf("alice")).every((each) => each.id !== id));
  assert.deepEqual(reasonOf(await world.voteAs("alice", id, { item })), [409, "ballot_over"]);
  await ctx.db.query(sql`update business set status = 'active' where address = ${address}`);
  await world.findVote("alice", id);
  assert.equal((await world.call("POST", `${signaturesPath}/${id}/cancel`)).status, 200);
});

await test("what a business signed is withdrawn after it moved, and nothing else is decided there", async () => {
  const old = await world.found({ members: ["uwe"], name: "Alt AG" });
  const next = await world.found({ members: ["uwe"], name: "Neu AG" });
  const { address } = old;
  const messages = ["Signed before the move", "And this as well"];
  for (const message of messages)
    await world.sign({ businessWalletAddress: address, message }, ["uwe"]);
  const move = { operation: "moveTo", successor: next.address };
  await world.govern("uwe", move, { business: address });
  await world.until("it has moved", async () =>
    (await world.businessOf("uwe", address))["status"] === "moved" ? true : null,
  );
  let nonce = 1;
  for (const message of messages) {
    assert.ok(await accepts(address, message));
    const withdrawal = { operation: "withdraw", hash: hashMessage(message) };
    await world.govern("uwe", withdrawal, { business: address });
    await world.until("it is withdrawn", async () =>
      (await accepts(address, message)) ? null : true,
    );
    nonce += 1;
    await world.until("and followed", async () => {
      const rows = await ctx.db.query(
        sql`select 1 as found from business where address = ${address} and nonce = ${nonce}`,
      );
      return rows.length === 1 ? true : null;
    });
  }
  const path = `/w/businesses/${address}/proposals`;
  const refused = await world.walletCall("uwe", "POST", path, { body: move });
  assert.deepEqual(reasonOf(refused), [404, "business_not_found"]);
});

await test("two withdrawals of one signature that members approved at once are both done, and nobody is asked again", async () => {
  const message = "Withdrawn once";
  await world.sign({ message });
  const { address } = world.business;
  const withdrawal = { operation: "withdraw", hash: hashMessage(message) };
  const options = { business: address, voters: [] };
  const ids = [
    await world.govern("alice", withdrawal, options),
    await world.govern("bob", withdrawal, options),
  ];
  await world.ctx.db.transaction(async (tx) => {
    // Keeps the service from following the chain until both are on their way.
    await tx.query(sql`select from business where address = ${address} for share`);
    for (const id of ids)
      for (const name of ["alice", "bob"]) assert.equal((await world.voteAs(name, id)).status, 200);
  });
  const statuses = await world.until("neither is on its way", async () => {
    const { proposals } = (await world.businessOf("alice", address)) as {
      proposals: { id: string; status: string }[];
    };
    const found = ids.map((id) => proposals.find((each) => each.id === id)?.status);
    return found.includes("relaying") ? null : found;
  });
  assert.deepEqual(statuses, ["executed", "executed"]);
  assert.ok((await actsOn(ctx.db, address)).includes("system business.govern.failed"));
});

await test("what members have approved is not cancelled while the chain records it, and that is what the refusal says", async () => {
  const id = await world.begin();
  const path = `${signaturesPath}/${id}`;
  await ctx.db.query(sql`update signature_request set approved_at = 1 where id = ${id}`);
  assert.deepEqual(reasonOf(await world.call("GET", `${path}/signature`)), [404, "not_signed"]);
  const refused = await world.call("POST", `${path}/cancel`);
  assert.deepEqual(reasonOf(refused), [409, "request_not_open"]);
  assert.match(refused.body.error?.message ?? "", /^request_not_open: .*approved.*chain/);
  assert.equal((await world.call("GET", path)).body["status"], "pending_approval");
  await ctx.db.query(sql`update signature_request set approved_at = null where id = ${id}`);
  assert.equal((await world.call("POST", `${path}/cancel`)).status, 200);
  const late = await world.call("POST", `${path}/cancel`);
  assert.match(late.body.error?.message ?? "", /^request_not_open: .*ended/);
});

await test("what is cancelled while its members are asked again is asked of nobody", async () => {
  const { address } = world.business;
  const id = await world.begin({ businessWalletAddress: address });
  await ctx.db.query(sql`update ballot set status = 'approved', ended_at = 1 where id = ${id}`);
  await ctx.db.query(sql`update signature_request set approved_at = 1 where id = ${id}`);
  const cancelling = await ctx.db.transaction(async (tx) => {
    // As when the chain took none of the approvals (signature-request-ballots.ts).
    await tx.query(sql`select from business where address = ${address} for update`);
    await tx.query(sql`update signature_request set approved_at = null where id = ${id}`);
    const path = `${signaturesPath}/${id}/cancel`;
    const asked = { answer: world.call("POST", path, { body: {} }) };
    const at = ["select business from ballot", "update signature_request"];
    await untilBlockedBehind(ctx.db, tx, { call: asked.answer, at });
    await tx.query(sql`update ballot set status = 'open', ended_at = null where id = ${id}`);
    return asked;
  });
  const { status, body } = await cancelling.answer;
  assert.deepEqual([status, body["status"]], [200, "cancelled"]);
  assert.ok((await world.inboxOf("alice")).every((item) => item.id !== id));
});

await test("a recording that failed in a block that the chain's node does not have yet is looked at later", async () => {
  const id = await world.begin();
  const failIn = async (block: number): Promise<unknown> =>
    ctx.db.query(sql`
      update signature_request set has_failed_recording = true, failed_block = ${block} where id = ${id}`);
  const hasFailed = async (): Promise<boolean> => {
    const rows = await ctx.db.query(
      sql`select from signature_request where id = ${id} and has_failed_recording`,
    );
    return rows.length === 1;
  };
  const statusOf = async (): Promise<unknown> =>
    (await world.call("GET", `${signaturesPath}/${id}`)).body["status"];
  const head = await readHead(ctx.chain);
  const later = head + 1000;
  // This context lacks what ending a request takes, so an attempt to end one would throw.
  const kyb = ctx as unknown as KybContext;
  await failIn(later);
  await mendRecordings(kyb);
  assert.equal(await hasFailed(), true);

  /** Runs the job with a node whose answers are changed. */
  const mendBy = async (
    change: (answer: unknown, call: { method: string; time: number; data: string }) => unknown,
  ): Promise<void> => {
    let time = 0;
    const request = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
      const answer = await ctx.chain.node.request(method, params);
      if (method === "eth_blockNumber") time += 1;
      const [{ data = "" } = {}] = params as [{ data?: string }?];
      return change(method === "eth_blockNumber" ? toHex(later) : answer, { method, time, data });
    };
    const node = { request } as unknown as KybContext["chain"]["node"];
    await mendRecordings({ ...kyb, chain: { ...ctx.chain, node } });
  };
  const successor = toFunctionSelector("function successor()");
  const elsewhere = `0x${"ab".repeat(20).padStart(64, "0")}`;
  await mendBy((answer, { method, time }) =>
    method === "eth_blockNumber" && time > 1 ? toHex(head) : answer,
  );
  await mendBy((answer, { data }) => (data === successor ? elsewhere : answer));
  // Changes the node's answer, because the world's own jobs would correct a changed table.
  const epoch = toFunctionSelector("function epoch()");
  await mendBy((answer, { data }) =>
    data === epoch ? toHex(BigInt(String(answer)) + 1n, { size: 32 }) : answer,
  );
  assert.equal(await hasFailed(), true, "by another node, or before what it says is in the tables");

  const approveEarlier = sql`update ballot set status = 'approved', ended_at = 1, epoch = epoch - 1 where id = ${id}`;
  await ctx.db.query(approveEarlier);
  await mendBy(async (answer, { method, time }) => {
    if (method !== "eth_blockNumber" || time > 1) return answer;
    await failIn(head);
    await world.until("the process looks at it meanwhile", async () =>
      (await hasFailed()) ? null : true,
    );
    return answer;
  });
  assert.equal(await statusOf(), "pending_approval", "what another process began anew goes on");

  await ctx.db.query(approveEarlier);
  await ctx.db.query(
    sql`update signature_request set expires_at = ${ctx.clock.now() - 1} where id = ${id}`,
  );
  await failIn(head);
  await mendRecordings(kyb);
  assert.equal(await hasFailed(), false);
  assert.equal(await statusOf(), "expired");
});

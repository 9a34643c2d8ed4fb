// How 25 members decide, and what an approval is good for: one business, one epoch, one category, one chain.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type Address,
  approvalDigest,
  businessCategory,
  type Hex32,
  hexOfBytes,
  signDigest,
} from "@svc/protocol";
import { encodeFunctionData, parseAbi } from "viem";
import { readerOf } from "../chain-reader.ts";
import { joinApprovals } from "../../service/src/kyb/ballot/ballots.ts";
import { actAs, openBusinessPage } from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { statusOf } from "../login-flow.ts";

const many = Array.from({ length: 25 }, (_, at) => `member ${at}`);
let world: KybWorld;
before(async () => {
  world = await openKybWorld({ members: many });
});
after(async () => world[Symbol.asyncDispose]());

const statusAfter = async (name: string, id: string, vote: "approve" | "reject") =>
  (await world.voteAs(name, id, { vote })).body["status"];

const propose = async (rules: Record<string, string>): Promise<string> =>
  world.govern(
    many[0] ?? "",
    { operation: "changeCharter", members: world.rosterOf(many), rules },
    { voters: [] },
  );

test("of 25 members 13 are the majority: 12 are not, and 13 refusals end it", async () => {
  const refused = await propose({ data_requests: "UNANIMOUS" });
  for (const name of many.slice(0, 12))
    assert.equal(await statusAfter(name, refused, "reject"), "open");
  assert.equal(await statusAfter("member 12", refused, "reject"), "refused");
  const approved = await propose({ data_requests: "UNANIMOUS" });
  for (const name of many.slice(12, 24))
    assert.equal(await statusAfter(name, approved, "approve"), "open");
  assert.equal(await statusAfter("member 0", approved, "approve"), "approved");
  const { address } = world.business;
  await world.reachEpoch(address, 1);
});

test("a change to a stricter rule needs the approvals of that rule: all of 25, one of whom is enough to refuse it", async () => {
  const refused = await propose({ governance: "UNANIMOUS" });
  assert.equal(await statusAfter("member 0", refused, "approve"), "open");
  assert.equal(await statusAfter("member 24", refused, "reject"), "refused");
  const approved = await propose({ governance: "UNANIMOUS" });
  for (const name of many.slice(1))
    assert.equal(await statusAfter(name, approved, "approve"), "open");
  assert.equal(await statusAfter("member 0", approved, "approve"), "approved");
  const { address } = world.business;
  await world.reachEpoch(address, 2);
  // A looser rule needs the approvals of the strict rule that it would replace.
  const path = `/w/businesses/${address}/proposals`;
  const looser = { operation: "changeCharter", members: world.rosterOf(many) };
  const { body } = await world.walletCall("member 0", "POST", path, {
    body: { ...looser, rules: { governance: "MAJORITY" } },
  });
  assert.equal(body["needed"], 25);
  // The removal of a lost member needs a majority of the others, whatever the rule.
  const removal = { operation: "startRemoval", member: world.person("member 24").address };
  const removing = await world.walletCall("member 0", "POST", path, { body: removal });
  assert.equal(removing.body["needed"], 13);
});

test("an approval counts for its category, business, environment, chain, epoch and time alone", async () => {
  const members = ["ann", "ben", "cleo"];
  const business = await world.found({ members });
  const twin = await world.found({ members });
  const sandbox = await world.found({ members, environment: "sandbox" });
  const page = await openBusinessPage(world);
  const { response } = await actAs(world, page, { name: "ann", business });
  assert.equal(response.status, 200);
  const request = { operation: "changeCharter", members: world.rosterOf(["ann", "ben"]) };
  const proposal = await world.govern("ann", request, {
    business: business.address,
    voters: ["ann"],
  });
  for (const [id, own] of [
    [page.loginId, businessCategory.login],
    [proposal, businessCategory.governance],
  ] as const) {
    const item = await world.findVote("ben", id);
    const others = Object.values(businessCategory).filter((category) => category !== own);
    const wrong = [
      ...others.map((category) => ({ category })),
      { business: twin.address },
      { business: sandbox.address },
      { chainId: world.ctx.chain.chainId + 1 },
      { epoch: 1 },
      { validUntil: Number(item["validUntil"]) + 1 },
    ];
    for (const changed of wrong) {
      const { status, body } = await world.voteAs("ben", id, { item, changed });
      const shown = `${item.kind} ${JSON.stringify(changed)}`;
      assert.deepEqual([status, body.error?.reason], [422, "signature_wrong"], shown);
    }
    for (const sent of [{ epoch: 1 }, { validUntil: Number(item["validUntil"]) + 1 }]) {
      const { status, body } = await world.voteAs("ben", id, { item, sent });
      assert.deepEqual([status, body.error?.reason], [409, "ballot_changed"]);
    }
  }
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "gathering");
  assert.equal((await world.voteAs("ben", page.loginId)).body["status"], "approved");
});

const walletAbi = parseAbi([
  "function record(bytes32 hash, uint48 validUntil, bytes signatures)",
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);

/** Whether the contract would record the hash with these approvals. */
async function wouldRecord(
  address: Address,
  given: { hash: Hex32; validUntil: number; signatures: `0x${string}` },
): Promise<boolean> {
  const { hash, validUntil, signatures } = given;
  const data = encodeFunctionData({
    abi: walletAbi,
    functionName: "record",
    args: [hash, validUntil, signatures],
  });
  return readerOf(world.ctx.chain)
    .call({ to: address, data })
    .then(
      () => true,
      () => false,
    );
}

test("approvals of a login, a release or a change make no signature, neither for the wallet nor for who verifies", async () => {
  const { address } = await world.found({ members: ["dora", "emil"] });
  const { ctx } = world;
  const hash = hexOfBytes(new Uint8Array(32).fill(7));
  const validUntil = ctx.clock.now() + 3600;
  const people = ["dora", "emil"]
    .map((name) => world.person(name))
    .toSorted((one, two) => (one.address < two.address ? -1 : 1));
  for (const category of Object.values(businessCategory)) {
    const approval = { chainId: ctx.chain.chainId, business: address, category, hash, epoch: 0 };
    const digest = approvalDigest({ ...approval, validUntil });
    const approvals = people.map(({ address: member, privateKey }) => ({
      member,
      signature: signDigest(digest, privateKey),
    }));
    const signatures = joinApprovals(approvals);
    const isSignature = category === businessCategory.signature;
    assert.equal(await wouldRecord(address, { hash, validUntil, signatures }), isSignature);
    const answer = await readerOf(ctx.chain)
      .readContract({
        address,
        abi: walletAbi,
        functionName: "isValidSignature",
        args: [hash, signatures],
      })
      .catch(() => null);
    assert.notEqual(answer, "0x1626ba7e");
  }
});

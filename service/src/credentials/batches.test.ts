import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address, Hex32 } from "@svc/protocol";
import { actsOn } from "../../../test/audited-acts.ts";
import { type FinalTransaction, NodeAway } from "../chain/index.ts";
import { sql } from "../platform/database/db.ts";
import { lockUnrevoked } from "./batch-store.ts";
import { credentialFinalHandlers, sendToRegistry } from "./batches.ts";
import { announceDistrusted, forgetUser, purgeCredentials, revokeCredential } from "./ending.ts";
import { issueCredential } from "./issue.ts";
import {
  createIssuer,
  distrustIssuer,
  foreseeDistrust,
  getBuiltInIssuer,
  getIssuer,
  listIssuers,
} from "./issuers.ts";
import { proveLeaves } from "./checks.ts";
import { findCredential, listLeaves, lockOfUser, lockUncollected } from "./credential-store.ts";
import { takeForeignRoles } from "./issuer-store.ts";
import { credentialJobs } from "./jobs.ts";
import { giveCredential, inAYear, openTestCredentials, someUser } from "./test-credentials.ts";
import { copyCredential, takeQueued } from "./test-credentials-store.ts";

await using world = await openTestCredentials();
const { ctx } = world;
const demo = await getBuiltInIssuer(ctx, "demo", "live");
const sandboxIssuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");
const email = { document: "CONTACT", fields: [{ field: "EMAIL", data: "a@example.com" }] };
const issue = async (issuer = demo, user = someUser()) =>
  issueCredential(ctx, issuer, { user, ...email, expiresAt: inAYear });
const kindsOf = (settled: readonly { kind: string }[]) => settled.map(({ kind }) => kind);

/** Reports one transaction as final in a block 50 seconds from now. */
async function tell(kind: string, subjectId: string, status: FinalTransaction["status"]) {
  const [hash, signer]: [Hex32, Address] = [`0x${"77".repeat(32)}`, `0x${"66".repeat(20)}`];
  const block = { blockNumber: 2, blockTime: ctx.clock.now() + 50 };
  const done = { id: "1", kind, subjectId, hash, signer, status, ...block };
  await ctx.db.transaction(async (tx) => credentialFinalHandlers(ctx)[kind]?.(tx, [done]));
}

/** A process to which the registry gives this answer, with this account as operator. */
const onChain = (answer: string, operator = ctx.chain.operator): typeof ctx => {
  const node = { request: async () => `0x${answer}` };
  return { ...ctx, chain: { ...ctx.chain, operator, node } as unknown as typeof ctx.chain };
};

await test("every issuer gets its role on chain once, before anything is attested in its name", async () => {
  await issue();
  const settled = await world.settle();
  const issuers = await listIssuers(ctx);
  const roles = settled.filter(({ kind }) => kind === "registry.role");
  assert.equal(roles.length, issuers.length);
  assert.equal(kindsOf(settled).at(-1), "credential.attest");
  for (const { address } of issuers) {
    const role = address.slice(2).padStart(64, "0");
    assert.ok(roles.some(({ data }) => data.startsWith(`0x2f2ff15d${role}`)));
  }
  assert.deepEqual(await world.settle(), [], "nothing is left to do");
});

await test("what is issued within a second shares one transaction for each issuer", async () => {
  const issued = [await issue(), await issue(), await issue(), await issue(sandboxIssuer)];
  const settled = await world.settle();
  assert.deepEqual(kindsOf(settled), ["credential.attest", "credential.attest"]);
  const [large] = settled.toSorted((a, b) => b.data.length - a.data.length);
  for (const { root } of issued.slice(0, 3)) assert.ok(large?.data.includes(root.slice(2)));
  for (const { id } of issued) {
    const row = await findCredential(ctx.db, id);
    assert.equal(row?.attestedAt, ctx.clock.now());
  }
});

await test("nothing on chain names a user, a field or a value", async () => {
  const user = someUser();
  await issue(demo, user);
  const data = (await world.settle()).map((each) => each.data).join("");
  assert.ok(!data.includes(user.slice(2)));
  for (const secret of ["EMAIL", "a@example.com"])
    assert.ok(!data.includes(Buffer.from(secret).toString("hex")));
});

await test("two processes at once send every root once", async () => {
  const issued = await Promise.all(Array.from({ length: 8 }, async () => issue()));
  const settled = (await Promise.all([world.settle(), world.settle(), world.settle()])).flat();
  for (const { root } of issued) {
    const times = settled.filter(({ data }) => data.includes(root.slice(2))).length;
    assert.equal(times, 1);
  }
});

const hourly = [120, 240, 480, 960, 1920, 3600, 3600];

await test("a batch that the registry refuses is sent again, after pauses that grow to an hour, until it is taken", async () => {
  const { id, root } = await issue();
  for (const pause of hourly) {
    const settled = await world.settle("reverted");
    assert.deepEqual(kindsOf(settled), ["credential.attest"]);
    assert.ok(settled[0]?.data.includes(root.slice(2)));
    world.advance(pause - 1);
    assert.deepEqual(await world.settle("reverted"), []);
    world.advance(1);
  }
  await world.settle();
  assert.equal((await findCredential(ctx.db, id))?.attestedAt, ctx.clock.now());
  await revokeCredential(ctx, demo, id);
  for (const pause of hourly) {
    assert.deepEqual(kindsOf(await world.settle("reverted")), ["credential.revoke"]);
    world.advance(pause - 1);
    assert.deepEqual(await world.settle("reverted"), []);
    world.advance(1);
  }
  assert.deepEqual(kindsOf(await world.settle()), ["credential.revoke"]);
  assert.deepEqual(await world.settle(), []);
});

await test("roots of an issuer without a role wait, while others are attested", async () => {
  const early = await createIssuer(ctx, { name: "Early", environment: "live" }, "test");
  const [waiting, other] = [await issue(early), await issue()];
  const first = await world.settle((kind) => (kind === "registry.role" ? "reverted" : "succeeded"));
  assert.deepEqual(kindsOf(first), ["registry.role", "credential.attest"]);
  assert.ok(first[1]?.data.includes(other.root.slice(2)));
  assert.ok(first.every(({ data }) => !data.includes(waiting.root.slice(2))));
  world.advance(120);
  const later = await world.settle();
  assert.deepEqual(kindsOf(later), ["registry.role", "credential.attest"]);
  assert.ok(later[1]?.data.includes(waiting.root.slice(2)));
});

await test("a role or a distrust that the registry refuses is sent again after such a pause, each time as another transaction", async () => {
  const subjects: string[] = [];
  const settle = async (kind: string | null, status: "succeeded" | "reverted" = "reverted") => {
    const settled = await world.settle(() => status);
    assert.deepEqual(kindsOf(settled), kind === null ? [] : [kind]);
    subjects.push(...settled.map(({ subjectId }) => subjectId));
  };
  const issuer = await createIssuer(ctx, { name: "Refused", environment: "live" }, "test");
  for (const pause of hourly) {
    await settle("registry.role");
    world.advance(pause - 1);
    await settle(null);
    world.advance(1);
  }
  await settle("registry.role", "succeeded");
  const roles = (await listIssuers(ctx)).find(({ id }) => id === issuer.id);
  assert.equal(roles?.roleGrantedAt, ctx.clock.now());
  const from = ctx.clock.now();
  await distrustIssuer(ctx, { issuerId: issuer.id, from }, "test");
  for (const pause of hourly) {
    await settle("registry.distrust");
    world.advance(pause - 1);
    await settle(null);
    world.advance(1);
  }
  await sendToRegistry(ctx);
  const [late] = await ctx.db.transaction(takeQueued);
  assert.ok(late);
  subjects.push(late.subjectId);
  // A new distrust is sent without a pause, even if the previous transaction reverts only now.
  await distrustIssuer(ctx, { issuerId: issuer.id, from: from - 60 }, "test");
  await tell("registry.distrust", late.subjectId, "reverted");
  await settle("registry.distrust", "succeeded");
  world.advance(3600);
  await settle(null);
  assert.equal(new Set(subjects).size, subjects.length);
});

await test("while the node is away, a distrust waits with an alarm and fails no job", async () => {
  const issuer = await createIssuer(ctx, { name: "Away", environment: "live" }, "test");
  await distrustIssuer(ctx, { issuerId: issuer.id, from: ctx.clock.now() }, "test");
  const alarms: string[] = [];
  const chain = {
    ...ctx.chain,
    metrics: { ...ctx.chain.metrics, raise: (alarm: string) => void alarms.push(alarm) },
    node: { request: async () => Promise.reject(new NodeAway("the node did not answer")) },
  } as unknown as typeof ctx.chain;
  const job = credentialJobs({ ...ctx, chain }).find(({ name }) => name === "credential-registry");
  await job?.run(AbortSignal.any([]));
  assert.deepEqual(alarms, ["node_unreachable"]);
  const settled = await world.settle();
  assert.deepEqual(kindsOf(settled).toSorted(), ["registry.distrust", "registry.role"]);
});

await test("a batch's final transaction may be reported twice", async () => {
  const { id } = await issue();
  const [attest] = await world.settle();
  assert.ok(attest);
  const at = (await findCredential(ctx.db, id))?.attestedAt;
  await tell(attest.kind, attest.subjectId, "succeeded");
  assert.equal((await findCredential(ctx.db, id))?.attestedAt, at);
});

await test("a revocation reaches the chain, also when the attestation is still on its way", async () => {
  const attested = await issue();
  await world.settle();
  await revokeCredential(ctx, demo, attested.id);
  const settled = await world.settle();
  assert.deepEqual(kindsOf(settled), ["credential.revoke"]);
  assert.ok(settled[0]?.data.includes(attested.root.slice(2)));
  assert.deepEqual(await world.settle(), []);
});

await test("a credential that ends before its root was sent is never attested", async () => {
  const { id, root } = await issue();
  await revokeCredential(ctx, demo, id);
  assert.deepEqual(await world.settle(), []);
  await issue();
  const [beside] = await world.settle();
  assert.ok(beside !== undefined && !beside.data.includes(root.slice(2)), "nor beside others");
});

/** After `0x` and the selector: the issuer, the offset of the list, its length and the roots. */
const rootsOf = ({ data }: { data: string }): number => (data.length - 2 - 8) / 64 - 3;

await test("roots beyond the limit of a transaction go with the next one", async () => {
  const { id } = await issue();
  await copyCredential(ctx.db, id, 500);
  assert.deepEqual((await world.settle()).map(rootsOf), [500, 1]);
});

await test("a distrust is written to the chain once, once more if it reaches further back, and each leaf is announced once", async () => {
  const issuer = await createIssuer(ctx, { name: "Doubtful", environment: "live" }, "test");
  const [early, late] = [someUser(), someUser()];
  await giveCredential(world, issuer, { user: early, ...email });
  world.advance(30);
  await giveCredential(world, issuer, { user: late, ...email });
  const invalidated = async (): Promise<string[]> => {
    await announceDistrusted(ctx);
    return world.invalidated.splice(0).map(({ user }) => user);
  };
  world.invalidated.splice(0);
  const from = ctx.clock.now();
  await distrustIssuer(ctx, { issuerId: issuer.id, from }, "test");
  assert.deepEqual(kindsOf(await world.settle()), ["registry.distrust"]);
  assert.deepEqual(await invalidated(), [late], "what was attested earlier counts still");
  assert.deepEqual(await invalidated(), []);
  const later = await distrustIssuer(ctx, { issuerId: issuer.id, from }, "test");
  assert.equal(later.distrustedFrom, from);
  assert.deepEqual(await world.settle(), []);
  await distrustIssuer(ctx, { issuerId: issuer.id, from: from - 60 }, "test");
  // The registry has the later time already.
  await sendToRegistry(onChain(`${"0".repeat(128)}${from.toString(16).padStart(64, "0")}`));
  assert.deepEqual(kindsOf(await world.settle()), ["registry.distrust"]);
  assert.deepEqual(await invalidated(), [early]);
});

await test("a foreseen distrust counts what would end with it, holders too, and changes nothing", async () => {
  const issuer = await createIssuer(ctx, { name: "Suspected", environment: "live" }, "test");
  const [early, late] = [someUser(), someUser()];
  await giveCredential(world, issuer, { user: early, ...email });
  world.advance(30);
  const from = ctx.clock.now();
  await giveCredential(world, issuer, { user: late, ...email });
  await giveCredential(world, issuer, { user: late, ...email });
  const revoked = await giveCredential(world, issuer, { user: early, ...email });
  await revokeCredential(ctx, issuer, revoked.id);
  await issue(issuer, someUser());
  const foreseen = await foreseeDistrust(ctx, { issuerId: issuer.id, from });
  assert.deepEqual(
    [foreseen.distrustedFrom, foreseen.credentials, foreseen.holders],
    [from, 3, 2],
    "the one that is on its way to the chain will not count either",
  );
  assert.equal((await getIssuer(ctx, issuer.id)).distrustedFrom, null);
  await distrustIssuer(ctx, { issuerId: issuer.id, from }, "test");
  world.advance(1);
  const again = await foreseeDistrust(ctx, { issuerId: issuer.id, from: ctx.clock.now() });
  assert.deepEqual([again.distrustedFrom, again.credentials, again.holders], [from, 0, 0]);
  const further = await foreseeDistrust(ctx, { issuerId: issuer.id, from: from - 60 });
  assert.deepEqual(
    [further.distrustedFrom, further.credentials, further.holders],
    [from - 60, 1, 1],
  );
});

await test("a credential that nobody collects in 30 days ends with its values, and is revoked on chain", async () => {
  const user = someUser();
  const { id, root } = await issue(demo, user);
  const kept = await giveCredential(world, demo, { user: someUser(), ...email });
  await world.settle();
  world.advance(30 * 86_400 - 1);
  await purgeCredentials(ctx);
  assert.equal((await findCredential(ctx.db, id))?.endedReason, null);
  world.advance(1);
  await purgeCredentials(ctx);
  assert.equal((await findCredential(ctx.db, id))?.endedReason, "lapsed");
  assert.deepEqual((await actsOn(ctx.db, id)).slice(1), ["system credential.lapse"]);
  const told = world.invalidated.filter((leaf) => leaf.user === user);
  assert.equal(told.length, 1, "a wallet may share what it never confirmed");
  assert.equal((await findCredential(ctx.db, kept.id))?.endedReason, null);
  const settled = await world.settle();
  assert.ok(
    settled.some(({ kind, data }) => kind === "credential.revoke" && data.includes(root.slice(2))),
  );
});

await test("a deleted user leaves nothing but roots to revoke", async () => {
  const user = someUser();
  const { id, root } = await giveCredential(world, demo, { user, ...email });
  const proving = { as: user, method: "POST", url: "/w/emails" } as const;
  const begun = await world.call({ ...proving, body: { email: "a@example.com" } });
  const forgotten = await ctx.db.transaction(async (tx) => forgetUser(tx, user, ctx.clock.now()));
  assert.equal(forgotten.credentials, 1);
  assert.deepEqual(
    forgotten.leaves.map(({ field }) => field),
    ["EMAIL"],
  );
  assert.equal(await findCredential(ctx.db, id), null);
  const address = `/w/emails/${String(begun.body["verificationId"])}`;
  const proved = await world.call({ ...proving, url: address, body: { code: "123456" } });
  assert.equal(proved.status, 404, "nor is an address any more that was to be proved");
  const settled = await world.settle();
  assert.deepEqual(kindsOf(settled), ["credential.revoke"]);
  assert.ok(settled[0]?.data.includes(root.slice(2)));
});

await test("a credential that was revoked before its user is deleted is neither revoked nor announced again", async () => {
  const user = someUser();
  const { id } = await giveCredential(world, demo, { user, ...email });
  await revokeCredential(ctx, demo, id);
  assert.deepEqual(kindsOf(await world.settle()), ["credential.revoke"]);
  const forgotten = await ctx.db.transaction(async (tx) => forgetUser(tx, user, ctx.clock.now()));
  assert.deepEqual(forgotten, { credentials: 1, leaves: [] });
  assert.deepEqual(await world.settle(), []);
});

await test("a deletion of a user locks the credentials whose end it announces", async () => {
  const user = someUser();
  const { id } = await issue(demo, user);
  const of = { before: ctx.clock.now(), limit: 1000 };
  assert.ok((await ctx.db.transaction(async (tx) => lockUncollected(tx, of))).includes(id));
  await ctx.db.transaction(async (tx) => {
    assert.deepEqual(await lockOfUser(tx, user), [id]);
    await ctx.db.transaction(async (other) => {
      assert.ok(!(await lockUncollected(other, of)).includes(id));
    });
  });
});

await test("a root that one process revokes is left alone by every other", async () => {
  const { id } = await giveCredential(world, demo, { user: someUser(), ...email });
  await revokeCredential(ctx, demo, id);
  const of = { limit: 9, now: ctx.clock.now() };
  await ctx.db.transaction(async (tx) => {
    assert.equal((await lockUnrevoked(tx, of)).length, 1);
    await ctx.db.transaction(async (other) => {
      await other.query(sql`set local lock_timeout = '2s'`);
      assert.deepEqual(await lockUnrevoked(other, of), []);
    });
  });
  assert.deepEqual(kindsOf(await world.settle()), ["credential.revoke"]);
});

await test("an attested root is not sent again, whatever is reported about its batch later", async () => {
  const { id } = await issue();
  const [sent] = await world.settle();
  const before = await findCredential(ctx.db, id);
  assert.notEqual(before?.attestedAt ?? null, null);
  await tell("credential.attest", sent?.subjectId ?? "", "reverted");
  assert.deepEqual(await findCredential(ctx.db, id), before);
  world.advance(3600);
  assert.deepEqual(await world.settle(), []);
});

await test("a leaf has no proof while its root is on its way to the chain", async () => {
  const user = someUser();
  const { id } = await issue(demo, user);
  const leaves = (await listLeaves(ctx.db, [id])).map(({ leaf }) => leaf);
  const prove = async () => proveLeaves(ctx, { user, environment: "live", leaves });
  await sendToRegistry(ctx);
  assert.deepEqual(await prove(), []);
  await world.settle();
  assert.equal((await prove()).length, leaves.length);
});

await test("a new admin of the registry takes over every role, and has it once it is granted again", async () => {
  const heir: Address = `0x${"b4".repeat(20)}`;
  const grantedAt = async () => (await getIssuer(ctx, demo.id)).roleGrantedAt;
  const former = await grantedAt();
  assert.notEqual(former, null);
  const obeys = (account: Address) => onChain(account.slice(2).padStart(64, "0"), heir);
  await sendToRegistry(obeys(ctx.chain.operator));
  assert.equal(await grantedAt(), former, "another account moves nothing");
  await sendToRegistry(obeys(heir));
  const queued = await ctx.db.transaction(takeQueued);
  const issuers = (await listIssuers(ctx)).length;
  assert.equal(queued.filter(({ kind }) => kind === "registry.role-end").length, issuers);
  const sent = queued.find(({ subjectId }) => subjectId === `${demo.id}:2`);
  assert.equal(sent?.kind, "registry.role-end");
  for (const status of ["succeeded", "reverted"] as const)
    await tell("registry.role", demo.id, status);
  assert.equal(await grantedAt(), null, "what the former account was granted says nothing");
  await sendToRegistry(obeys(heir));
  assert.deepEqual(await ctx.db.transaction(takeQueued), []);
  const refused = queued.find(
    ({ kind, subjectId }) =>
      kind === "registry.role" && subjectId.endsWith(`:${hourly.length + 2}`),
  );
  assert.ok(refused);
  await tell("registry.role", refused.subjectId, "reverted");
  world.advance(120);
  await sendToRegistry(obeys(heir));
  const again = await ctx.db.transaction(takeQueued);
  assert.deepEqual(
    kindsOf(again),
    ["registry.role"],
    "the reverts of the former account do not delay it",
  );
  await tell("registry.role", `${demo.id}:2`, "succeeded");
  assert.equal(await grantedAt(), ctx.clock.now() + 50);
  await tell("registry.role", `${demo.id}:2`, "reverted");
  world.advance(3600);
  await sendToRegistry(obeys(heir));
  assert.deepEqual(await ctx.db.transaction(takeQueued), [], "a role that is granted stays");
  const foreign: Address = `0x${"c5".repeat(20)}`;
  await ctx.db.query(sql`
    update issuer set role_account = ${foreign} where id = ${sandboxIssuer.id}`);
  const taken = await ctx.db.transaction(async (tx) => takeForeignRoles(tx, heir));
  assert.deepEqual(
    taken.map(({ id, account }) => [id, account]),
    [[sandboxIssuer.id, foreign]],
  );
});

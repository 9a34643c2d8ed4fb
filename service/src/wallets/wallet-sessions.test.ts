// How long a challenge may be answered, and how long the session that it opened stands.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { addressOfPrivateKey, sessionDigest, signDigest } from "@svc/protocol";
import { openTestContext } from "../../../test/test-context.ts";
import type { Ctx } from "../platform/context.ts";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import { reportWallets } from "./user-report-store.ts";
import { endSessionsOf, forgetSessionsOf } from "./wallet-session-store.ts";
import {
  type Challenge,
  closeWalletSession,
  getWalletUser,
  makeChallenge,
  openWalletSession,
  purgeWalletSessions,
} from "./wallet-sessions.ts";

await using context = await openTestContext();
let now = 1_800_000_000;
const ctx: Ctx = { ...context, clock: { now: () => now, nowMs: () => now * 1000 } };
const personKey = randomBytes(32);
const person = addressOfPrivateKey(personKey);

async function answer(challenge: Challenge): Promise<{ token: string; expiresAt: number }> {
  const signature = signDigest(sessionDigest(challenge), personKey);
  return openWalletSession(
    ctx,
    { ...challenge, svcID: person, signature, callerAddress: "127.0.0.1" },
    async ({ address, digest, signature: signed }) => recoverAddress(digest, signed) === address,
  );
}

const noSession = { reason: "wallet_session_required" };

await test("a challenge is answered within five minutes, and once", async () => {
  const [used, late] = [makeChallenge(ctx), makeChallenge(ctx)];
  assert.equal(used.deadline, now + 300);
  now += 300;
  await answer(used);
  await assert.rejects(answer(used), { reason: "challenge_wrong" });
  now += 1;
  await assert.rejects(answer(late), { reason: "challenge_wrong" });
  await assert.rejects(answer({ ...late, deadline: now + 300 }), { reason: "challenge_wrong" });
});

await test("a session stands for an hour, however often it is used, or until it is closed", async () => {
  const { token, expiresAt } = await answer(makeChallenge(ctx));
  assert.equal(expiresAt, now + 3600);
  const [header, another] = [token, (await answer(makeChallenge(ctx))).token].map(
    (each) => `Bearer ${each}`,
  );
  now += 3599;
  assert.equal(await getWalletUser(ctx, header), person);
  assert.equal(await getWalletUser(ctx, `bearer ${token}`), person);
  await closeWalletSession(ctx, another?.replace("Bearer", "BEARER"));
  await assert.rejects(getWalletUser(ctx, another), noSession);
  assert.equal(await getWalletUser(ctx, header), person);
  now += 1;
  await assert.rejects(getWalletUser(ctx, header), noSession);
});

await test("a session that is over is kept no longer because it is closed once more", async () => {
  const { token } = await answer(makeChallenge(ctx));
  await closeWalletSession(ctx, `Bearer ${token}`);
  const ended = { createdAt: now, expiresAt: now };
  now += 1;
  await closeWalletSession(ctx, `Bearer ${token}`);
  await ctx.db.transaction(async (tx) => endSessionsOf(tx, person, now));
  const [newest] = (await reportWallets(ctx.db, person, 1)).walletSessions;
  assert.deepEqual(newest, ended);
});

for (const [what, end] of [
  ["logged out", endSessionsOf],
  ["deleted", forgetSessionsOf],
] as const)
  await test(`the sessions of a user who is ${what} end, and what opened one opens no other`, async () => {
    const challenge = makeChallenge(ctx);
    const { token } = await answer(challenge);
    now += 1;
    assert.ok((await ctx.db.transaction(async (tx) => end(tx, person, now))) > 0);
    await assert.rejects(getWalletUser(ctx, `Bearer ${token}`), noSession);
    await assert.rejects(answer(challenge), { reason: "challenge_wrong" });
    assert.equal(await ctx.db.transaction(async (tx) => endSessionsOf(tx, person, now)), 0);
    const { token: next } = await answer(makeChallenge(ctx));
    assert.equal(await getWalletUser(ctx, `Bearer ${next}`), person);
  });

for (const late of [4, 590])
  await test(`a session that was closed at once is remembered for as long as a process ${late} s late takes its challenge`, async () => {
    const challenge = makeChallenge(ctx);
    await closeWalletSession(ctx, `Bearer ${(await answer(challenge)).token}`);
    now += 300;
    const early: Ctx = {
      ...ctx,
      clock: { now: () => now + late, nowMs: () => (now + late) * 1000 },
    };
    await purgeWalletSessions(early);
    await assert.rejects(answer(challenge), { reason: "challenge_wrong" });
  });

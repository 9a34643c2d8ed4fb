// A person's verified fields, from the issuer into the wallet and from there to another person, over the real service.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Wallet } from "@svc/wallet";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { openWalletAt } from "../wallet-at.ts";
import { openWorld } from "../world.ts";

await using world = await openWorld();
const { ctx } = world;

async function openPerson(relaysAnswers = false): Promise<Wallet & { address: string }> {
  const { wallet, address } = await openWalletAt(world, { relaysAnswers });
  return { ...wallet, address };
}

const holder = await openPerson();
const reader = await openPerson();
const given = {
  user: holder.address,
  document: "IDCARD",
  fields: [
    { field: "IDCARD_NAME", data: "Alice Muster" },
    { field: "IDCARD_DOB", data: "1990-02-03" },
  ],
  expiresAt: ctx.clock.now() + 400 * 86_400,
};

await test("a wallet collects what was issued, once, and the service forgets the values", async () => {
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  await issueCredential(ctx, issuer, given);
  const { received, refused } = await holder.receive();
  assert.deepEqual([received.length, refused], [1, []]);
  const fields = received[0]?.fields.map(({ field }) => field) ?? [];
  assert.ok(fields.includes("IDCARD_DOB") && fields.includes("AGE_OVER_18"), fields.join(" "));
  assert.equal((await holder.receive()).received.length, 0);
  const [row] = await ctx.db.query<{ sealed: Buffer | null }>({
    name: "sealed values",
    text: "select values_sealed as sealed from credential",
    values: [],
  });
  assert.equal(row?.sealed, null);
});

await test("what one person hands over, one other picks up, and nobody after", async () => {
  const outcome = await holder.approve("svc:?attr=idcard-name&exp=5");
  assert.ok(outcome.kind === "left");
  assert.ok(outcome.link.startsWith(`${ctx.config.walletOrigin}/p#`));
  const picked = await reader.pickUp(outcome.link);
  assert.equal(picked["svcID"], holder.address);
  await assert.rejects(reader.pickUp(outcome.link), /mailbox_empty/);
});

await test("what nobody picked up is gone when its minutes are over", async () => {
  const outcome = await holder.approve("svc:?attr=idcard-name&exp=5");
  assert.ok(outcome.kind === "left");
  await world.advance(300);
  await assert.rejects(reader.pickUp(outcome.link), /mailbox_empty/);
});

await test("a wallet in a page refuses what the relay may not reach", async () => {
  const page = await openPerson(true);
  const link = `svc:sign?data=0x6869&conn=${encodeURIComponent("https://internal.invalid/x")}`;
  const approving = page.approve(link, { accept: new Set(["unknown-requester"]) });
  await assert.rejects(approving, /not_delivered/);
});

await test("an address at the broker that vouches for nothing is somebody unknown", async () => {
  const connection = encodeURIComponent(`${world.baseUrl}/w/nothing`);
  const { requester, concerns } = await holder.describe(`svc:sign?data=0x6869&conn=${connection}`);
  assert.deepEqual([requester.known, concerns], [false, ["unknown-requester"]]);
});

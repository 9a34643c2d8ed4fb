// Offers at the edges: the last second of a link, a member who is removed just as it takes an offer, and an offer that is
// cancelled just then.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { encodeCharter } from "@svc/protocol";
import { lockBusiness } from "../../service/src/kyb/business/business-store.ts";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { markClaimed } from "../../service/src/kyb/offer/offer-store.ts";
import { claimOffer, openOffer } from "../../service/src/kyb/offer/offers.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { bufferOfHex } from "../../service/src/platform/hex.ts";
import { SealBroken } from "../../service/src/platform/cryptography/seal.ts";
import { openDataWorld } from "../kyb-data-world.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { untilBlocked } from "../lock-waits.ts";

await using world = await openDataWorld();
const ctx = world.ctx as unknown as KybContext;
const { address: business } = world.business;

async function offer(): Promise<{ id: string; token: string; expiresAt: number }> {
  const headers = { "idempotency-key": randomBytes(8).toString("hex") };
  const path = `${signaturesPath}/offers`;
  const { body } = await world.call("POST", path, { headers, body: someText });
  const link = String(body["link"]);
  const connection = new URLSearchParams(link.slice(link.indexOf("?"))).get("conn") ?? "";
  const token = new URL(connection).pathname.split("/").at(-1) ?? "";
  return { id: String(body["offerId"]), token, expiresAt: Number(body["expiresAt"]) };
}

/** The service with its clock at that second. */
const at = (now: number): KybContext => ({ ...ctx, clock: { ...ctx.clock, now: () => now } });

await test("an offer is shown and taken to its last second, and then shown to nobody, taken or not", async () => {
  const [taken, left] = [await offer(), await offer()];
  for (const { token, expiresAt } of [taken, left])
    assert.ok(await openOffer(at(expiresAt), token));
  const claim = { token: taken.token, member: world.person("alice").address, business };
  const claimed = await claimOffer(at(taken.expiresAt), claim);
  assert.ok(await openOffer(at(taken.expiresAt), taken.token));
  assert.deepEqual(await claimOffer(at(taken.expiresAt + 1), claim), claimed);
  for (const { token, expiresAt } of [taken, left])
    await assert.rejects(openOffer(at(expiresAt + 1), token), /offer_not_open/);
  const late = claimOffer(at(left.expiresAt + 1), { ...claim, token: left.token });
  await assert.rejects(late, /offer_not_open/);
});

await test("what one offer asks is neither shown nor asked by another to whose row it was moved", async () => {
  const [own, other] = [await offer(), await offer()];
  await ctx.db.query(sql`
    update kyb_offer set request_sealed = (select request_sealed from kyb_offer where id = ${other.id})
    where id = ${own.id}`);
  const claim = { token: own.token, member: world.person("alice").address, business };
  await assert.rejects(openOffer(ctx, own.token), SealBroken);
  await assert.rejects(claimOffer(ctx, claim), SealBroken);
});

await test("an offer that is cancelled while a member takes it is taken, and the cancellation comes too late", async () => {
  const { id } = await offer();
  const claimant = world.person("alice").address;
  const { cancelling } = await ctx.db.transaction(async (tx) => {
    await markClaimed(tx, { id, business, claimant, requestId: "request", now: ctx.clock.now() });
    const cancelled = world.call("POST", `/api/v1/kyb/offers/${id}/cancel`);
    await untilBlocked(ctx.db, tx, [cancelled]);
    return { cancelling: cancelled };
  });
  const { status, body } = await cancelling;
  assert.deepEqual([status, body.error?.reason], [409, "offer_not_open"]);
});

await test("a member who is removed while it takes an offer takes nothing", async () => {
  const { token } = await offer();
  const member = world.person("alice").address;
  const { claiming } = await ctx.db.transaction(async (tx) => {
    const { charter } = (await lockBusiness(tx, business)) ?? assert.fail();
    const members = charter.members.filter((each) => each.address !== member);
    const rest = bufferOfHex(encodeCharter({ ...charter, members }));
    // Marked as read from a later block, or the next read of the chain would undo it.
    await tx.query(
      sql`update business set charter = ${rest}, chain_block = chain_block + 1000000 where address = ${business}`,
    );
    const claimed = claimOffer(ctx, { token, member, business }).catch((error: unknown) => error);
    await untilBlocked(ctx.db, tx, [claimed]);
    return { claiming: claimed };
  });
  assert.match(String(await claiming), /not_a_member/);
});

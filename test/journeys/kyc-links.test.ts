// Several links of one order: each is good for its own attempt and until its own end.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { decline, type KycWorld, openKycWorld, openRequest, shareResult } from "../kyc-world.ts";
import { post } from "../raw-wallet.ts";

let world: KycWorld;
before(async () => {
  world = await openKycWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("the link of an attempt that is over approves, declines and counts nothing in the next one", async () => {
  const person = await world.verify();
  const first = await world.ask({ user: person.address });
  const link = first.body.data?.["link"];
  const opened = await openRequest(link);
  assert.equal((await decline(person, link)).status, 200);
  const referenceKey = String(first.body.data?.["referenceKey"]);
  await world.ask({ user: person.address });
  assert.notEqual((await post(opened.connection, shareResult(person, opened))).status, 200);
  assert.notEqual((await decline(person, link)).status, 200);
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
});

test("a link ends with its own expiration, though a later one keeps its order open for longer", async () => {
  const person = await world.verify();
  const now = world.ctx.clock.now();
  const short = await world.ask({ user: person.address, expiration: now + 330 });
  const opened = await openRequest(short.body.data?.["link"]);
  await world.ask({ user: person.address, expiration: now + 880 });
  await world.advance(340);
  assert.equal((await post(opened.connection, shareResult(person, opened))).status, 410);
});

// How businesses come to be, over the public routes and on the embedded chain.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("a business is active once everybody signed, and its wallet is deployed", async () => {
  const { ctx, business } = world;
  const code = await ctx.chain.reader.getCode({ address: business.address });
  assert.ok(code !== undefined && code.length > 2);
  const seen = await world.businessOf("bob");
  assert.equal(seen["status"], "active");
  assert.equal(seen["epoch"], 0);
});

// What an operator sees of logins, without seeing who logged in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage } from "../login-flow.ts";
import { claim, decline, newIdentity, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("logins are counted by how they ended, and nobody is named", async () => {
  const counted = async (outcome: string): Promise<number> => {
    const { values } = await world.ctx.metrics.logins.get();
    return values.find((value) => value.labels.outcome === outcome)?.value ?? 0;
  };
  const earlier = [await counted("finished"), await counted("declined")];
  await logIn(world.baseUrl, world.client, newIdentity());
  const page = await openPage(world.baseUrl, world.client);
  await decline(await claim(scan(page.qr), newIdentity()));
  const later = [await counted("finished"), await counted("declined")];
  assert.deepEqual(
    later,
    earlier.map((value) => value + 1),
  );
});

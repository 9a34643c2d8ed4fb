// What an operator sees of logins, without seeing who logged in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { logIn, openPage, statusOf } from "../login-flow.ts";
import { approve, claim, decline, newIdentity, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function counted(outcome: string): Promise<number> {
  const { values } = await world.ctx.metrics.logins.get();
  return values.find((value) => value.labels.outcome === outcome)?.value ?? 0;
}

test("logins are counted by how they ended, and nobody is named", async () => {
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

test("a login that its page starts again is counted once, by how it ended first", async () => {
  const restarted = await counted("restarted");
  const wrong = await counted("wrong_number");
  const restart = async (page: Awaited<ReturnType<typeof openPage>>): Promise<void> => {
    const url = `${world.baseUrl}/oauth2/login/${page.loginId}/restart`;
    const { status } = await page.jar.fetch(url, { method: "POST" });
    assert.equal(status, 303);
  };
  const open = await openPage(world.baseUrl, world.client);
  await restart(open);
  await restart(open);
  assert.equal(await counted("restarted"), restarted + 1);
  const guessed = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(guessed.qr), newIdentity());
  const { digits } = await statusOf(world.baseUrl, guessed);
  assert.equal((await approve(claimed, digits === "00" ? "01" : "00")).status, 403);
  await restart(guessed);
  assert.equal(await counted("restarted"), restarted + 1);
  assert.equal(await counted("wrong_number"), wrong + 1);
});

// The same request, fifty times at once, on two processes over one database.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { getPackage } from "../../service/src/accounts/index.ts";
import { decline, type KycWorld, openKycWorld, openRequest, shareResult } from "../kyc-world.ts";
import { post } from "../raw-wallet.ts";
import type { ServerProcess } from "../world.ts";

let world: KycWorld;
let second: ServerProcess;
before(async () => {
  world = await openKycWorld();
  second = await world.startProcess({ METRICS_PORT: "0" });
});
after(async () => {
  await second[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

test("fifty identical requests make one order and hold one transfer, and 49 are answered that it exists", async () => {
  const kycPackage = await world.buy({ transfers: 50 });
  const body = { sourceKey: kycPackage.sourceKey, expiration: world.ctx.clock.now() + 600 };
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      world.ask(body, index % 2 === 0 ? {} : { baseUrl: second.url }),
    ),
  );
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const keys = new Set(answers.map(({ body: answer }) => answer.data?.["referenceKey"]));
  assert.equal(keys.size, 1);
  const repeats = answers.filter(({ body: answer }) => answer.data?.["alreadySent"] === true);
  assert.equal(repeats.length, 49);
  const { transfersHeld, transfersConsumed } = await getPackage(world.ctx, kycPackage.id);
  assert.deepEqual([transfersHeld, transfersConsumed], [1, 0]);
  const referenceKey = String([...keys][0]);
  const events = await world.call("GET", `/api/v2/kyc/events?referenceKey=${referenceKey}`);
  const items = events.body.data?.["items"] as { sequence: number }[];
  assert.deepEqual(
    items.map(({ sequence }) => sequence),
    [1],
  );
});

test("approval, refusal and cancellation at once end in one of them, with exact credits", async () => {
  const kycPackage = await world.buy({ transfers: 5 });
  const asked = await world.ask({ sourceKey: kycPackage.sourceKey });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const { link } = asked.body.data ?? {};
  // Whoever opens it after the end is told so; here all three have it before them.
  const opened = await openRequest(link);
  const outcomes = await Promise.all([
    post(opened.connection, shareResult(world.person, opened)).then(({ status }) => status),
    decline(world.person, link).then(({ status }) => status),
    world
      .call("POST", "/api/v2/kyc/cancel", { body: { referenceKey }, baseUrl: second.url })
      .then(({ status }) => status)
      .catch(() => 0),
  ]);
  assert.equal(outcomes.filter((status) => status === 200).length, 1, String(outcomes));
  const { status } = await world.statusOf(referenceKey);
  if (status !== "FAILED") await world.reach(referenceKey, "CONFIRMED");
  const { transfersHeld, transfersConsumed } = await getPackage(world.ctx, kycPackage.id);
  assert.deepEqual([transfersHeld, transfersConsumed], [0, status === "FAILED" ? 0 : 1]);
});

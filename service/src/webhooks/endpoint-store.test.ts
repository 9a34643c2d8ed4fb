import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { endpointIdOf } from "./endpoint.ts";
import {
  listTargets,
  lockHealth,
  reactivate,
  saveEndpoint,
  saveHealth,
  type TargetRow,
} from "./endpoint-store.ts";
import { registerEndpoint, rotateSecret } from "./endpoints.ts";
import { insertClientDomain } from "./test-endpoint-store.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

test("a new secret of one endpoint ends none of another one's", async () => {
  await using webhooks = await openTestWebhooks();
  const { ctx, clientDomainId } = webhooks;
  const other = randomUUID();
  await insertClientDomain(ctx.db, other);
  const rotate = async (of: string, immediate: boolean): Promise<unknown> =>
    ctx.db.transaction(async (tx) => rotateSecret(ctx, tx, { clientDomainId: of, immediate }));
  const read = async (of: string): Promise<TargetRow[]> =>
    listTargets(ctx.db, [endpointIdOf({ channel: "kyb", clientDomainId: of, url: null })]);
  const url = "https://hooks.example.com/in";
  await webhooks.register(url);
  await ctx.db.transaction(async (tx) => registerEndpoint(ctx, tx, { clientDomainId: other, url }));
  await rotate(other, false);
  const before = await read(other);
  assert.equal(before[0]?.secrets.length, 2);
  for (const immediate of [false, false, true]) await rotate(clientDomainId, immediate);
  await webhooks.register(url);
  assert.deepEqual(await read(other), before);
  assert.equal((await read(clientDomainId))[0]?.secrets.length, 1);
});

test("whoever ends a quarantine begins with no failure and no refusal", async () => {
  await using webhooks = await openTestWebhooks();
  const { ctx, clientDomainId } = webhooks;
  const url = "https://hooks.example.com/in";
  await webhooks.register(url);
  const id = endpointIdOf({ channel: "kyb", clientDomainId, url: null });
  const now = ctx.clock.now();
  const begun = { failures: 0, failingSinceMs: null, refusals: 0, refusedSinceMs: null };
  const ended = { failures: 9, failingSinceMs: 1, refusals: 3, refusedSinceMs: 1 };
  const ways = [
    async () => reactivate(ctx.db, id, now),
    async () => saveEndpoint(ctx.db, { id, clientDomainId, url, now }),
  ];
  for (const end of ways) {
    const health = { isActive: false, isResuming: false, ...ended };
    await saveHealth(ctx.db, [{ id, health }]);
    await end();
    const [known] = await lockHealth(ctx.db, [id]);
    assert.deepEqual(known?.health, { isActive: true, isResuming: true, ...begun });
  }
});

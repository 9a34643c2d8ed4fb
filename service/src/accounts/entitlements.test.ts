import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { openTestContext } from "../../../test/test-context.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { until } from "../../../test/patience.ts";
import { openApiKeys } from "./api-key-lookup.ts";
import {
  createApiKey,
  createDomain,
  createOrganization,
  listEntitlements,
  setEntitlement,
} from "./index.ts";

await using ctx = await openTestContext();
await using keys = await openApiKeys(ctx);

async function open(name: string) {
  const { id: organizationId } = await createOrganization(ctx, { name }, "test");
  const site = { organizationId, domain: "localhost", environment: "live" };
  const { id: clientDomainId } = await createDomain(ctx, site, "test");
  const { key } = await createApiKey(ctx, { clientDomainId, name: "backend" }, "test");
  const set = async (isGranted: boolean): Promise<unknown> =>
    setEntitlement(ctx, { organizationId, entitlement: "kyb:pii", isGranted }, "test");
  const read = async (): Promise<unknown> => {
    const listed = await listEntitlements(ctx, organizationId);
    await until("the key has them", async () => {
      const { entitlements } = await keys.authenticate(key);
      return isDeepStrictEqual([...entitlements], listed) ? true : null;
    });
    return listed;
  };
  return { set, read, clientDomainId };
}

await test("what is granted to one organization, and withdrawn from it, concerns no other one", async () => {
  const [one, other, third] = [await open("One"), await open("Other"), await open("Third")];
  await one.set(true);
  await other.set(true);
  assert.deepEqual(await third.read(), ["kyb:read"]);
  await one.set(false);
  assert.deepEqual(await other.read(), ["kyb:read", "kyb:pii"]);
});

await test("withdrawing an entitlement waits for a key that is being made, so that the key hears of it", async () => {
  const { set, read, clientDomainId } = await open("Fourth");
  await set(true);
  await read();
  const { made, withdrawn } = await ctx.db.transaction(async (tx) => {
    const db = {
      ...ctx.db,
      transaction: async <T>(work: (own: typeof tx) => Promise<T>) => work(tx),
    };
    const { key } = await createApiKey({ ...ctx, db }, { clientDomainId, name: "new" }, "test");
    const withdrawing = set(false);
    await untilBlocked(ctx.db, tx, [withdrawing]);
    return { made: key, withdrawn: withdrawing };
  });
  await withdrawn;
  await until("the new key has none", async () => {
    const { entitlements } = await keys.authenticate(made);
    return entitlements.has("kyb:pii") ? null : true;
  });
});

// The form of an Idempotency-Key, which every KYB call that is no GET may name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiKey, setEntitlement } from "../../service/src/accounts/index.ts";
import { openWorld } from "../world.ts";

await using world = await openWorld();
const { ctx, clientDomainId, organizationId } = world;
const { key: authorization } = await createApiKey(ctx, { clientDomainId, name: "k" }, "test");
for (const entitlement of ["kyb:data-request", "kyb:pii", "kyb:signature"])
  await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "test");

async function refusalOf(path: string, key: string): Promise<unknown[]> {
  const answer = await fetch(`${world.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization, "idempotency-key": key },
  });
  const { error } = (await answer.json()) as { error: { reason: string; message: string } };
  return [answer.status, error.reason, error.message];
}

await test("a malformed Idempotency-Key is refused before it is said that the object does not exist", async () => {
  const message = "malformed_request: Idempotency-Key has 1 to 255 visible ASCII characters";
  const acts = [
    "data-requests/01J/cancel",
    "data-requests/01J/redeliver",
    "signature-requests/01J/cancel",
    "signature-requests/01J/redeliver",
    "events/01J/redeliver",
    "offers/01J/cancel",
  ];
  for (const act of acts) {
    const path = `/api/v1/kyb/${act}`;
    assert.equal((await refusalOf(path, "good"))[0], 404, path);
    for (const key of ["", "two words", "k".repeat(256)])
      assert.deepEqual(await refusalOf(path, key), [400, "malformed_request", message], path);
  }
});

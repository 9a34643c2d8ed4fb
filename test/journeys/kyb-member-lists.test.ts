// What members look up of their own business: whom it takes no requests of, and what it released.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  createApiKey,
  createDomain,
  createOrganization,
  setEntitlement,
  topUp,
} from "../../service/src/accounts/index.ts";
import { type DataWorld, openDataWorld, registerEndpoint } from "../kyb-data-world.ts";

let world: DataWorld;
before(async () => {
  world = await openDataWorld();
});
after(async () => world[Symbol.asyncDispose]());

/** @returns its API key */
async function merchantNamed(name: string): Promise<string> {
  const { ctx } = world;
  const { id: organizationId } = await createOrganization(ctx, { name }, "test");
  const domain = { organizationId, domain: "localhost", environment: "live" };
  const { id: clientDomainId } = await createDomain(ctx, domain, "test");
  const { key } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
  for (const entitlement of ["kyb:data-request", "kyb:pii"])
    await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "test");
  await topUp(ctx, { organizationId, environment: "live", amountRappen: 10_000n }, "test");
  await registerEndpoint(world, key);
  return key;
}

type Item = Record<string, unknown>;

/** @returns the items of all pages of one, in their order */
async function listAs(name: string, list: string): Promise<Item[]> {
  const items: Item[] = [];
  let cursor = "";
  do {
    const path = `/w/businesses/${world.business.address}/${list}?limit=1${cursor}`;
    const { status, body } = await world.walletCall(name, "GET", path);
    assert.equal(status, 200, JSON.stringify(body));
    const page = body["items"] as Item[];
    assert.ok(page.length <= 1);
    items.push(...page);
    const next = body["nextCursor"] as string | undefined;
    cursor = next === undefined ? "" : `&cursor=${next}`;
  } while (cursor !== "");
  return items;
}

/** What whoever is no member, or asks for no page, is answered. */
async function checkRefusals(list: string): Promise<void> {
  const answers = [
    ["mallory", `${world.business.address}/${list}`],
    ["alice", `${world.person("alice").address}/${list}`],
    ["alice", `x/${list}`],
    ["alice", `${world.business.address}/${list}?cursor=x`],
    ["alice", `${world.business.address}/${list}?limit=101`],
  ] as const;
  const reasons: unknown[] = [];
  for (const [name, path] of answers) {
    const { status, body } = await world.walletCall(name, "GET", `/w/businesses/${path}`);
    reasons.push([status, body.error?.reason]);
  }
  const notFound = [404, "business_not_found"];
  const invalid = [400, "invalid_request"];
  assert.deepEqual(reasons, [notFound, notFound, notFound, invalid, invalid]);
}

test("members see whom their business takes no requests of, and take a block back by what they see", async () => {
  const path = `/w/businesses/${world.business.address}/block`;
  const requests: string[] = [];
  for (const name of ["First shop", "Second shop"]) {
    const apiKey = await merchantNamed(name);
    const { body } = await world.ask({}, { apiKey });
    const requestId = String(body["requestId"]);
    requests.unshift(requestId);
    await world.walletCall("alice", "POST", path, { body: { requestId } });
  }
  const [second, first] = await listAs("carol", "blocks");
  const shown = { name: "Second shop", domain: "localhost" };
  assert.deepEqual([second?.["requester"], second?.["requestId"]], [shown, requests[0]]);
  assert.deepEqual(Object.keys(second ?? {}), ["requester", "requestId", "blockedAt"]);
  assert.ok(Math.abs(Number(second?.["blockedAt"]) - world.ctx.clock.now()) < 60);
  const body = { requestId: second?.["requestId"], isBlocked: false };
  assert.equal((await world.walletCall("bob", "POST", path, { body })).status, 200);
  assert.deepEqual(await listAs("alice", "blocks"), [first]);
  await checkRefusals("blocks");
});

// How many of each thing an organization may have; made all at once, as a script gone wrong would.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestContext } from "../../../test/test-context.ts";
import { Problem } from "../platform/http/problems.ts";
import {
  addMember,
  createApiKey,
  createClient,
  createDomain,
  createOrganization,
  disableClient,
  listApiKeys,
  listClients,
  listDomains,
  listMembers,
  removeMember,
  revokeApiKey,
} from "./index.ts";

await using ctx = await openTestContext();
const { id: organizationId } = await createOrganization(ctx, { name: "Example AG" }, "cli");
const makeDomain = async (at: number) =>
  createDomain(
    ctx,
    { organizationId, domain: `shop-${at}.example.com`, environment: "live" },
    "cli",
  );
const clientDomainId = (await makeDomain(0)).id;
const userOf = (at: number): string => `0x${String(at).padStart(40, "0")}`;

/** How many of these calls succeed; each other one is refused because there are too many. */
async function countMade(calls: number, make: (at: number) => Promise<unknown>): Promise<number> {
  const made = await Promise.allSettled(Array.from({ length: calls }, async (_, at) => make(at)));
  for (const each of made)
    if (each.status === "rejected") {
      assert.ok(each.reason instanceof Problem, String(each.reason));
      assert.equal(each.reason.reason, "too_many");
    }
  return made.filter(({ status }) => status === "fulfilled").length;
}

await test("an organization has at most 100 client domains", async () => {
  assert.equal(await countMade(103, async (at) => makeDomain(at + 1)), 99);
  assert.equal((await listDomains(ctx, organizationId)).length, 100);
});

await test("a client domain has at most 100 clients, and room for another when one is disabled", async () => {
  const given = { clientDomainId, name: "Shop", authenticationMethod: "none" } as const;
  const redirectUris = ["https://shop-0.example.com/callback"];
  const make = async () => createClient(ctx, { ...given, redirectUris }, "cli");
  assert.equal(await countMade(104, make), 100);
  const [first] = await listClients(ctx, clientDomainId);
  await disableClient(ctx, first?.id ?? "", "cli");
  assert.equal(await countMade(2, make), 1);
});

await test("an organization has at most 100 live keys, and room for another when one is revoked", async () => {
  const make = async () => createApiKey(ctx, { clientDomainId, name: "backend" }, "cli");
  assert.equal(await countMade(104, make), 100);
  const [first] = await listApiKeys(ctx, organizationId);
  await revokeApiKey(ctx, first?.id ?? "", "cli");
  assert.equal(await countMade(2, make), 1);
});

await test("an organization has at most 200 members, who can still get other roles", async () => {
  const add = async (at: number, role = "viewer") =>
    addMember(ctx, { organizationId, user: userOf(at), role }, "cli");
  await add(0, "owner");
  assert.equal(await countMade(203, async (at) => add(at + 1)), 199);
  const [, other] = await listMembers(ctx, organizationId);
  const user = other?.user ?? "";
  await addMember(ctx, { organizationId, user, role: "developer" }, "cli");
  await removeMember(ctx, { organizationId, user }, "cli");
  assert.equal(await countMade(2, async (at) => add(at + 1000)), 1);
});

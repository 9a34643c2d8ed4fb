// How many of each thing an organization may have; all are made at once, as by a script gone wrong.
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

/** How many of these calls succeed; each of the others is refused with the limit. */
async function countMade(
  calls: number,
  bound: string,
  make: (at: number) => Promise<unknown>,
): Promise<number> {
  const made = await Promise.allSettled(Array.from({ length: calls }, async (_, at) => make(at)));
  for (const each of made)
    if (each.status === "rejected") {
      assert.ok(each.reason instanceof Problem, String(each.reason));
      assert.deepEqual([each.reason.reason, each.reason.message], ["too_many", bound]);
    }
  return made.filter(({ status }) => status === "fulfilled").length;
}

await test("an organization has at most 100 client domains", async () => {
  const bound = "an organization has at most 100 client domains";
  assert.equal(await countMade(103, bound, async (at) => makeDomain(at + 1)), 99);
  assert.equal((await listDomains(ctx, organizationId)).length, 100);
});

await test("a client domain has at most 100 clients, and room for another when one is disabled", async () => {
  const given = { clientDomainId, name: "Shop", authenticationMethod: "none" } as const;
  const redirectUris = ["https://shop-0.example.com/callback"];
  const make = async () => createClient(ctx, { ...given, redirectUris }, "cli");
  const bound = "a client domain has at most 100 clients; disable one first";
  assert.equal(await countMade(104, bound, make), 100);
  const [first] = await listClients(ctx, clientDomainId);
  await disableClient(ctx, first?.id ?? "", "cli");
  assert.equal(await countMade(2, bound, make), 1);
});

await test("an organization has at most 100 live keys, and room for another when one is revoked", async () => {
  const make = async () => createApiKey(ctx, { clientDomainId, name: "backend" }, "cli");
  const bound = "an organization has at most 100 live API keys; revoke one first";
  assert.equal(await countMade(104, bound, make), 100);
  const [first] = await listApiKeys(ctx, organizationId);
  await revokeApiKey(ctx, first?.id ?? "", "cli");
  assert.equal(await countMade(2, bound, make), 1);
});

await test("an organization has at most 200 members, who can still get other roles", async () => {
  const add = async (at: number, role = "viewer") =>
    addMember(ctx, { organizationId, user: userOf(at), role }, "cli");
  await add(0, "owner");
  const bound = "an organization has at most 200 members; remove one first";
  assert.equal(await countMade(203, bound, async (at) => add(at + 1)), 199);
  const [, other] = await listMembers(ctx, organizationId);
  const user = other?.user ?? "";
  await addMember(ctx, { organizationId, user, role: "developer" }, "cli");
  await removeMember(ctx, { organizationId, user }, "cli");
  assert.equal(await countMade(2, bound, async (at) => add(at + 1000)), 1);
});

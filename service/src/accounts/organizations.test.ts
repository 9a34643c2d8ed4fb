import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestContext } from "../../../test/test-context.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { Problem, type Reason } from "../platform/http/problems.ts";
import { sql } from "../platform/database/db.ts";
import { forgetMemberships } from "./organization-store.ts";
import {
  addMember,
  createOrganization,
  getOrganization,
  listMembers,
  listOrganizations,
  removeMember,
} from "./index.ts";

const alice = `0x${"a1".repeat(20)}`;
const bob = `0x${"b0".repeat(20)}`;

await using ctx = await openTestContext();

const refusedWith =
  (reason: Reason) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.reason === reason;

await test("an organization is found by its id after it was created, with one audit entry", async () => {
  const created = await createOrganization(ctx, { name: " Example AG " }, "cli");
  assert.equal(created.name, "Example AG");
  assert.deepEqual(await getOrganization(ctx, created.id.toUpperCase()), created);
  assert.ok((await listOrganizations(ctx)).some((each) => each.id === created.id));
  const rows = await ctx.db.query<{ action: string; actor: string }>({
    name: "",
    text: "select action, actor from audit_entry where subject = $1",
    values: [created.id],
  });
  assert.deepEqual(rows, [{ action: "organization.create", actor: "cli" }]);
});

await test("the name of an organization has up to 200 characters", async () => {
  const name = "a".repeat(200);
  assert.equal((await createOrganization(ctx, { name }, "cli")).name, name);
  const longer = createOrganization(ctx, { name: `${name}a` }, "cli");
  await assert.rejects(longer, { reason: "invalid_request" });
});

await test("pages of organizations follow each other without gap or overlap", async () => {
  for (const name of ["One", "Two", "Three"]) await createOrganization(ctx, { name }, "cli");
  const all = await listOrganizations(ctx);
  const first = await listOrganizations(ctx, { limit: 2 });
  const rest = await listOrganizations(ctx, { after: first[1]?.id ?? "" });
  assert.deepEqual([...first, ...rest], all);
  await assert.rejects(listOrganizations(ctx, { limit: 101 }), refusedWith("invalid_request"));
  await assert.rejects(listOrganizations(ctx, { after: "x" }), refusedWith("invalid_request"));
});

await test("ids that name nothing are not found, whatever they look like", async () => {
  for (const id of ["", "x", "' or 1=1", "00000000-0000-7000-8000-000000000000", "a\0b"])
    await assert.rejects(getOrganization(ctx, id), refusedWith("organization_not_found"));
});

await test("the first member is an owner, and the last owner stays", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Roles" }, "cli");
  const add = async (user: string, role: string): Promise<unknown> =>
    addMember(ctx, { organizationId, user, role }, "cli");
  await assert.rejects(add(alice, "viewer"), refusedWith("last_owner"));
  await add(alice.toUpperCase().replace("0X", "0x"), "owner");
  await add(bob, "developer");
  await assert.rejects(add(alice, "viewer"), refusedWith("last_owner"));
  await assert.rejects(
    removeMember(ctx, { organizationId, user: alice }, "cli"),
    refusedWith("last_owner"),
  );
  await add(bob, "owner");
  await removeMember(ctx, { organizationId, user: alice }, bob);
  const members = await listMembers(ctx, organizationId);
  assert.deepEqual(
    members.map(({ user, role }) => ({ user, role })),
    [{ user: bob, role: "owner" }],
  );
});

await test("two owners who leave at once leave one behind", async () => {
  // Several rounds: in the first, opening the second connection takes longer than the other's whole transaction.
  for (let round = 0; round < 5; round += 1) {
    const { id: organizationId } = await createOrganization(ctx, { name: "Race" }, "cli");
    for (const user of [alice, bob])
      await addMember(ctx, { organizationId, user, role: "owner" }, "cli");
    const results = await Promise.allSettled(
      [alice, bob].map(async (user) => removeMember(ctx, { organizationId, user }, "cli")),
    );
    assert.deepEqual(results.map((each) => each.status).toSorted(), ["fulfilled", "rejected"]);
    assert.equal((await listMembers(ctx, organizationId)).length, 1);
  }
});

await test("of a removal and a deletion of one user at once, the removal finds no member and records none", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Deleted" }, "cli");
  for (const user of [alice, bob])
    await addMember(ctx, { organizationId, user, role: "owner" }, "cli");
  const { refused } = await ctx.db.transaction(async (tx) => {
    await forgetMemberships(tx, bob);
    const removal = removeMember(ctx, { organizationId, user: bob }, "cli");
    const refusal = assert.rejects(removal, refusedWith("member_not_found"));
    await untilBlocked(ctx.db, tx, [refusal]);
    return { refused: refusal };
  });
  await refused;
  const entries = await ctx.db.query(sql`
    select from audit_entry where subject = ${organizationId} and action = 'organization.member.remove'`);
  assert.equal(entries.length, 0);
});

await test("somebody who is not a member cannot be removed, and odd addresses and roles are refused", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Odd" }, "cli");
  await assert.rejects(
    removeMember(ctx, { organizationId, user: alice }, "cli"),
    refusedWith("member_not_found"),
  );
  for (const [user, role] of [
    ["0x12", "owner"],
    ["", "owner"],
    [alice, "admin"],
  ] as const)
    await assert.rejects(
      addMember(ctx, { organizationId, user, role }, "cli"),
      refusedWith("invalid_request"),
    );
});

// Businesses that were never founded: rows as the founding leaves them, for tests that need many at once. Their wallets
// are on no chain, so governance and signatures are out of their reach.
import { randomBytes } from "node:crypto";
import { type Address, type BusinessRule, encodeCharter } from "@svc/protocol";
import { uuidv7 } from "../service/src/platform/ids.ts";
import type { DataWorld } from "./kyb-data-world.ts";

/** Active and verified, each with a record; the members are persons of the world, all with a vote. */
export async function insertBusinesses(
  world: DataWorld,
  count: number,
  members: readonly string[],
  rule: BusinessRule = "MAJORITY",
): Promise<Address[]> {
  const businesses = Array.from(
    { length: count },
    (): Address => `0x${randomBytes(20).toString("hex")}`,
  );
  for (const address of businesses) await insertBusiness(world, { address, names: members, rule });
  // A hundred at once, which a service still answers in time.
  for (let at = 0; at < count; at += 100) await world.issueRecords(businesses.slice(at, at + 100));
  return businesses;
}

async function insertBusiness(
  world: DataWorld,
  { address, names, rule }: { address: Address; names: readonly string[]; rule: BusinessRule },
): Promise<void> {
  const { ctx } = world;
  const now = ctx.clock.now();
  const [creator = "", ...others] = names.map((name) => world.person(name).address);
  const charter = encodeCharter({
    rules: { signature_requests: rule, data_requests: rule, governance: rule },
    members: [creator, ...others].map((each) => ({ address: each as Address, isVoting: true })),
  });
  await ctx.db.transaction(async (tx) => {
    await tx.query({
      name: "",
      text: `insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
          charter, verified_at, registered_at, created_at)
        values ($1, 'live', 'Inserted AG', 'active', $2, $3, $4, $5, $6, $4, $4, $4)`,
      values: [
        address,
        creator,
        uuidv7(ctx.clock, ctx.random),
        now,
        randomBytes(32),
        Buffer.from(charter.slice(2), "hex"),
      ],
    });
    const rows = [creator, ...others].map((member) => {
      const id = uuidv7(ctx.clock, ctx.random);
      const place = { table: "business_member", id, column: "name_sealed" };
      return { id, member, name: ctx.seal.seal(Buffer.from("Member"), place) };
    });
    await tx.query({
      name: "",
      text: `insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
        select id, $1, member, name, true, member = $2, $3
        from unnest($4::uuid[], $5::text[], $6::bytea[]) as g (id, member, name)`,
      values: [
        address,
        creator,
        now,
        rows.map(({ id }) => id),
        rows.map(({ member }) => member),
        rows.map(({ name }) => name),
      ],
    });
  });
}

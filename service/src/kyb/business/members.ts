import type { Address } from "@svc/protocol";
import { type ChainContext, NodeAway } from "../../chain/index.ts";
import type { Ctx } from "../../platform/context.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../../platform/cryptography/seal.ts";
import type { BusinessMember } from "./business.ts";
import * as store from "./business-store.ts";

/** The name by which the other members know a member. */
export const memberNameColumn: SealedColumn = {
  table: "business_member",
  idColumn: "id",
  column: "name_sealed",
};

/** Seals a member's name for the row with this id. */
export function sealMemberName(ctx: Pick<Ctx, "seal">, id: string, name: string): Buffer {
  return ctx.seal.seal(Buffer.from(name), placeIn(memberNameColumn, id));
}

/** The members with their names, in the order of the addresses. */
export async function listMembers(
  ctx: Pick<Ctx, "seal">,
  db: Queryable,
  business: Address,
): Promise<BusinessMember[]> {
  return (await listMembersOf(ctx, db, [business])).get(business) ?? [];
}

/** The same for several businesses, by their addresses. */
export async function listMembersOf(
  ctx: Pick<Ctx, "seal">,
  db: Queryable,
  businesses: readonly Address[],
): Promise<Map<Address, BusinessMember[]>> {
  const rows = await store.listMemberRows(db, businesses);
  const rosters = new Map<Address, BusinessMember[]>(businesses.map((each) => [each, []]));
  for (const row of rows)
    rosters.get(row.business)?.push({
      address: row.member,
      name: openMemberName(ctx, row),
      isVoting: row.isVoting,
      isCreator: row.isCreator,
    });
  return rosters;
}

/** Refuses anybody but a member, as if the business did not exist. @throws {Problem} business_not_found */
export async function requireMember(
  db: Queryable,
  of: { business: Address; member: Address },
): Promise<{ isVoting: boolean }> {
  const business = await store.findBusiness(db, of.business);
  const found = business?.charter.members.find(({ address }) => address === of.member);
  if (found === undefined) throw new Problem("business_not_found");
  return found;
}

/** Opens the name that {@link sealMemberName} has sealed. */
export function openMemberName(
  ctx: Pick<Ctx, "seal">,
  row: { readonly id: string; readonly nameSealed: Buffer },
): string {
  return ctx.seal.open(row.nameSealed, placeIn(memberNameColumn, row.id)).toString();
}

/**
 * Refuses businesses as new members: they have no key to sign with. A founding would wait for them in vain; added
 * later, under the rule UNANIMOUS, they would block every decision.
 *
 * @throws {Problem} invalid_request
 */
export async function refuseBusinesses(
  db: Queryable,
  added: readonly { readonly address: Address }[],
): Promise<void> {
  const [keyless] = await store.listBusinessesAt(
    db,
    added.map(({ address }) => address),
  );
  if (keyless !== undefined)
    throw invalidRequest(
      `${keyless.address} is a business: it has no key, and is no member of one`,
    );
}

/**
 * Refuses contracts as new voters: the wallet of a business only accepts signatures of keys, so under the rule
 * UNANIMOUS they would block every decision. Cannot recognise a contract account that is not deployed yet.
 *
 * @throws {Problem} invalid_request
 * @throws {NodeAway} if the node's answer is no code
 */
export async function refuseContracts(
  { chain }: Pick<ChainContext, "chain">,
  voters: readonly { readonly address: Address }[],
): Promise<void> {
  const codes = await Promise.all(
    voters.map(async ({ address }) => chain.node.request("eth_getCode", [address, "latest"])),
  );
  if (!codes.every(isHex)) throw new NodeAway("the chain's node tells no code");
  const contract = voters.find((_, at) => !isCodeOfKey(codes[at] ?? ""));
  if (contract !== undefined)
    throw invalidRequest(`${contract.address} is a contract: it has no key to approve with`);
}

/** Whether an account with this code has a key: it has no code, or a delegation by its key (EIP-7702). */
export function isCodeOfKey(code: string): boolean {
  return /^0x(?:ef0100[0-9a-f]{40})?$/i.test(code);
}

const isHex = (code: unknown): code is string => typeof code === "string" && /^0x/i.test(code);

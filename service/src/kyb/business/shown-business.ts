import type { Address } from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import { invalidRequest } from "../../platform/http/problems.ts";
import { type Business, type BusinessMember, isGoodStanding } from "./business.ts";
import {
  firstPlace,
  listBusinessesAt,
  listBusinessesOf,
  type Place,
  type PlacedBusiness,
} from "./business-store.ts";
import { listProposalsOf, type ListedProposal } from "./proposal-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { listMembersOf } from "./members.ts";
import { listRemovals, type Removal } from "./removal-store.ts";
import { shownCharter } from "./shown-charter.ts";
import { showProposal } from "./shown-proposal.ts";
import { listMoves, type Move } from "./standing-store.ts";

/** The most businesses of a page. */
const businessesMax = 100;
/**
 * A page ends with the business that exceeds this size. Anybody can invite anybody into a large roster with long names:
 * without a limit, they could make the page too long for the wallet.
 */
const pageBytesMax = 1024 * 1024;
const proposalsShownMax = 20;

/** A business as its members see it. */
export type ShownBusiness = { address: string; name: string; status: string } & Record<
  string,
  unknown
>;

/**
 * A page of the businesses of a member, with members, rules, and open proposals, removals and moves.
 *
 * @param cursor the `nextCursor` of the previous page; undefined for the first page
 * @throws {Problem} invalid_request for a malformed cursor
 */
export async function showBusinesses(
  ctx: Pick<KybContext, "seal" | "chain"> & { readonly db: Queryable },
  member: Address,
  cursor: string | undefined,
): Promise<{ items: ShownBusiness[]; nextCursor?: string }> {
  const after = cursor === undefined ? firstPlace : placeOf(cursor);
  const rows = await listBusinessesOf(ctx.db, member, { after, limit: businessesMax + 1 });
  const places = rows.slice(0, businessesMax);
  const parts = await readParts(
    ctx,
    places.map(({ address }) => address),
  );
  const items: ShownBusiness[] = [];
  let bytes = 0;
  for (const [index, place] of places.entries()) {
    const known = partsOf(parts, place);
    if (known !== null) {
      const item = show(ctx, known, member);
      bytes += Buffer.byteLength(JSON.stringify(item));
      items.push(item);
    }
    const isFull = index + 1 === businessesMax || bytes > pageBytesMax;
    if (isFull && index + 1 < rows.length) return { items, nextCursor: cursorOf(place) };
  }
  return { items };
}

const cursorPattern = /^(?<invited>[01])\.(?<createdAt>[0-9]{1,12})\.(?<address>0x[0-9a-f]{40})$/;

function placeOf(cursor: string): Place {
  const { invited, createdAt, address } = cursorPattern.exec(cursor)?.groups ?? {};
  if (address === undefined) throw invalidRequest("cursor is not one of ours");
  return { isInvited: invited === "1", createdAt: Number(createdAt), address };
}

const cursorOf = ({ isInvited, createdAt, address }: Place): string =>
  `${isInvited ? 1 : 0}.${createdAt}.${address}`;

/** Reads everything that a page shows, with one statement for each kind. */
async function readParts(
  { db, seal }: Pick<KybContext, "seal"> & { readonly db: Queryable },
  addresses: readonly Address[],
) {
  const [businesses, members, removals, moves, proposals] = await Promise.all([
    listBusinessesAt(db, addresses),
    listMembersOf({ seal }, db, addresses),
    listRemovals(db, addresses),
    listMoves(db, addresses),
    listProposalsOf(db, addresses, proposalsShownMax),
  ]);
  return {
    businesses: new Map(businesses.map((each) => [each.address, each])),
    members,
    removals: new Map(removals.map((each) => [each.business, each])),
    moves: new Map(moves.map((each) => [each.business, each])),
    proposals: Map.groupBy(proposals, ({ business }) => business),
  };
}

interface Parts {
  readonly place: PlacedBusiness;
  readonly business: Business;
  readonly members: readonly BusinessMember[];
  readonly removal: Removal | undefined;
  readonly move: Move | undefined;
  readonly proposals: readonly ListedProposal[];
}

/** Null for a founding that was deleted meanwhile. */
function partsOf(
  parts: Awaited<ReturnType<typeof readParts>>,
  place: PlacedBusiness,
): Parts | null {
  const { address } = place;
  const business = parts.businesses.get(address);
  if (business === undefined) return null;
  return {
    place,
    business,
    members: parts.members.get(address) ?? [],
    removal: parts.removals.get(address),
    move: parts.moves.get(address),
    proposals: parts.proposals.get(address) ?? [],
  };
}

function show(
  ctx: Pick<KybContext, "seal" | "chain">,
  { place, business, members, removal, move, proposals }: Parts,
  member: Address,
): ShownBusiness {
  const { address, name, status, environment, charter, epoch, nonce } = business;
  const self = members.find((each) => each.address === member);
  return {
    address,
    name,
    status,
    environment,
    verified: isGoodStanding(business),
    role: {
      isCreator: self?.isCreator ?? false,
      votingRights: self?.isVoting ?? false,
    },
    ...shownCharter(charter, members),
    chainId: ctx.chain.chainId,
    epoch,
    nonce,
    ...(status === "inviting"
      ? { invitation: { id: place.invitationId, deadline: place.deadline } }
      : {}),
    ...(business.registeredAt === null ? {} : { registeredAt: business.registeredAt }),
    ...(business.successor === null ? {} : { successor: business.successor }),
    removal: removal === undefined ? null : shownRemoval(removal),
    move: move === undefined ? null : shownMove(move),
    proposals: proposals.map((proposal) => {
      const { id, status: state, createdAt, tally } = proposal;
      const shown = showProposal(ctx, proposal, members);
      return { id, status: state, createdAt, ...tally, ...shown };
    }),
  };
}

const shownRemoval = ({ member, endsAt, keepNonce, answeredAt }: Removal): object => ({
  member,
  endsAt,
  keepNonce,
  hasAnswered: answeredAt !== null,
});

const shownMove = ({ successor, endsAt, keepNonce }: Move): object => ({
  successor,
  endsAt,
  keepNonce,
});

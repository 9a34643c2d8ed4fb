// A proposal as members see it.
import { governanceFunctions, type Address } from "@svc/protocol";
import { placeIn, type SealedColumn } from "../../platform/cryptography/seal.ts";
import { listBusinessesAt } from "./business-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { listMembersOf } from "./members.ts";
import { charterOf, type Proposal } from "./proposal.ts";
import { shownCharter } from "./shown-charter.ts";

/** The names of the members of a proposed charter. */
export const proposalNamesColumn: SealedColumn = {
  table: "business_proposal",
  idColumn: "id",
  column: "names_sealed",
};

/** An address with its name. */
interface Named {
  readonly address: Address;
  readonly name: string;
}

/**
 * A proposal as wallets show it, with everything from which they recompute what to sign. Present members keep their
 * names, whatever names the proposer gave them: otherwise a proposer could pass one member off as another.
 *
 * @param members the present members of the business
 */
export function showProposal(
  ctx: Pick<KybContext, "seal">,
  proposal: Proposal,
  members: readonly Named[],
): object {
  const { operation, arguments: args, nonce, proposer } = proposal;
  const charter = charterOf(proposal);
  const word = args.slice(-64);
  return {
    proposer,
    operation: governanceFunctions[operation],
    arguments: args,
    nonce,
    ...(charter === null
      ? {}
      : { charter: shownCharter(charter, [...namesOf(ctx, proposal), ...members]) }),
    ...(operation === "startRemoval" ? { member: proposal.member } : {}),
    ...(operation === "moveTo" ? { successor: `0x${word.slice(24)}` } : {}),
    ...(operation === "withdraw" ? { hash: `0x${word}` } : {}),
  };
}

/** The same by proposal id, with the present charter, so that wallets can show what would change. */
export async function showProposals(
  ctx: Pick<KybContext, "db" | "seal">,
  proposals: readonly Proposal[],
): Promise<ReadonlyMap<string, object>> {
  const addresses = [...new Set(proposals.map(({ business }) => business))];
  const [businesses, rosters] = await Promise.all([
    listBusinessesAt(ctx.db, addresses),
    listMembersOf(ctx, ctx.db, addresses),
  ]);
  const charters = new Map(businesses.map(({ address, charter }) => [address, charter]));
  return new Map(
    proposals.map((proposal) => {
      const members = rosters.get(proposal.business) ?? [];
      const charter = charters.get(proposal.business);
      const current = charter === undefined ? {} : { current: shownCharter(charter, members) };
      return [proposal.id, { ...showProposal(ctx, proposal, members), ...current }];
    }),
  );
}

/** The names that the proposer gave the members of a new charter. */
export function namesOf(
  ctx: Pick<KybContext, "seal">,
  { id, namesSealed }: Proposal,
): readonly Named[] {
  if (namesSealed === null) return [];
  return JSON.parse(
    ctx.seal.open(namesSealed, placeIn(proposalNamesColumn, id)).toString(),
  ) as Named[];
}

export function sealNames(
  ctx: Pick<KybContext, "seal">,
  id: string,
  names: readonly Named[],
): Buffer {
  const kept = JSON.stringify(keptNames(names));
  return ctx.seal.seal(Buffer.from(kept), placeIn(proposalNamesColumn, id));
}

export const keptNames = (names: readonly Named[]): readonly Named[] =>
  names.map(({ address, name }) => ({ address, name }));

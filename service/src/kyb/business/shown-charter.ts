import type { Address, Charter } from "@svc/protocol";

/** Rules and members as wallets show them. */
export interface ShownCharter {
  readonly rules: Charter["rules"];
  readonly members: readonly {
    readonly address: Address;
    /** Empty if it is not known. */
    readonly name: string;
    readonly votingRights: boolean;
  }[];
}

/** A charter with the names of its members; wallets encode it again to check the hash. */
export function shownCharter(
  { rules, members }: Charter,
  names: readonly { readonly address: Address; readonly name: string }[],
): ShownCharter {
  const nameOf = new Map(names.map(({ address, name }) => [address, name]));
  return {
    rules,
    members: members.map(({ address, isVoting }) => ({
      address,
      name: nameOf.get(address) ?? "",
      votingRights: isVoting,
    })),
  };
}

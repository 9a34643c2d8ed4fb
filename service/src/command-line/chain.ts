import { describeChain } from "../chain/index.ts";
import type { Verb } from "./verb.ts";

export const chainVerbs: readonly Verb[] = [
  {
    name: "chain show",
    summary: "Show the chain: its id, the contracts, and the operator's account with its balance.",
    notes:
      "Merchants compare receipts with these addresses; the contracts keep theirs for ever. Before the first start they are where the contracts will be, and the account needs coin to make them.",
    example: "chain show",
    run: async (shell) => shell.withContext(describeChain),
  },
];

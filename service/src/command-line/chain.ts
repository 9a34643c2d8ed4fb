import { parseAddress } from "@svc/protocol";
import { describeChain, fundFromOutside } from "../chain/index.ts";
import { actor, inContext, UsageError, wholeNumber, type Verb } from "./verb.ts";

const coinWei = 10n ** 18n;

export const chainVerbs: readonly Verb[] = [
  {
    name: "chain show",
    summary: "Show the chain: its id, the contracts, and the operator's account with its balance.",
    notes:
      "Merchants compare receipts with these addresses, which never change. Before the first start they say where the contracts will be, and the account needs coin to deploy them.",
    example: "chain show",
    run: inContext(describeChain),
  },
  {
    name: "chain fund",
    summary: "Hand out coin of the embedded chain.",
    notes:
      "Outside the profile `dev` a unit of gas costs one gwei there for everybody but the service, so a wallet that sends a transaction of its own needs coin: one coin pays for a thousand million units of gas.",
    parameters: [{ name: "address", description: "The account that gets it." }],
    options: { coins: { value: "number", required: true, description: "How many." } },
    example: "chain fund 0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13 --coins 1",
    run: async (shell, input) => {
      const address = parseAddress(input.text("address"));
      if (address === null) throw new UsageError("address must be 20 bytes in hex");
      const coins = wholeNumber("--coins", input.text("coins"));
      if (coins === 0) throw new UsageError("--coins must be at least 1");
      return shell.withContext(async (ctx) => {
        await fundFromOutside(ctx, { address, amountWei: BigInt(coins) * coinWei }, actor);
        return { address, coins };
      });
    },
  },
];

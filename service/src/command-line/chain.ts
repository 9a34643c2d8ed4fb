import { parseAddress } from "@svc/protocol";
import { describeChain, fundFromOutside } from "../chain/index.ts";
import { actor, inContext, UsageError, wholeNumber, type Verb } from "./verb.ts";

const coinWei = 10n ** 18n;

export const chainVerbs: readonly Verb[] = [
  {
    name: "chain show",
    summary: "Show the chain: its id, the contracts, and the operator's account with its balance.",
    notes:
      "Merchants check receipts against the contracts' addresses, which never change. Before the first start these are the addresses at which the contracts will be deployed; the operator's account needs coin for that.",
    example: "chain show",
    run: inContext(describeChain),
  },
  {
    name: "chain fund",
    summary: "Send coin of the embedded chain to an account.",
    notes:
      "Outside the profile `dev`, everybody but the service pays one gwei per unit of gas on the embedded chain, so a wallet that sends its own transactions needs coin. One coin pays for a thousand million units of gas.",
    parameters: [{ name: "address", description: "The account that receives the coin." }],
    options: {
      coins: {
        value: "number",
        required: true,
        description: "How many coins to send, at least 1.",
      },
    },
    example: "chain fund 0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13 --coins 1",
    run: async (shell, input) => {
      const address = parseAddress(input.text("address"));
      if (address === null) throw new UsageError("<address> must be an address of 20 bytes in hex");
      const coins = wholeNumber("--coins", input.text("coins"));
      if (coins === 0) throw new UsageError("--coins must be at least 1");
      return shell.withContext(async (ctx) => {
        await fundFromOutside(ctx, { address, amountWei: BigInt(coins) * coinWei }, actor);
        return { address, coins };
      });
    },
  },
];

import { parseAddress, type Address } from "@svc/protocol";
import type { OwnBusiness } from "../businesses.ts";
import type { Wallet } from "../wallet.ts";
import type { Home } from "./home.ts";
import { withWallet } from "./identity-options.ts";
import { UsageError, type Input, type Option } from "./verb.ts";

/** Which business is meant. */
export const businessOption = {
  business: {
    value: "0x..",
    description: "The business to act for; required if the identity votes in several.",
  },
} as const satisfies Record<string, Option>;

/** Undefined if the choice is left to the wallet. @throws {UsageError} */
export function readBusinessOption(input: Input): Address | undefined {
  const given = input.optional("business");
  if (given === undefined) return undefined;
  const address = parseAddress(given);
  if (address === null) throw new UsageError("--business must be an address of 20 bytes in hex");
  return address;
}

/** Works with the wallet of the chosen identity on the business that is meant. @throws {UsageError} */
export async function withBusiness<T>(
  home: Home,
  input: Input,
  work: (wallet: Wallet, business: OwnBusiness) => Promise<T>,
): Promise<T> {
  const named = readBusinessOption(input);
  return withWallet(home, input, async (wallet) =>
    work(wallet, await wallet.chooseBusiness(named)),
  );
}

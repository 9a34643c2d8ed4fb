import { openHomeWallet, type Home } from "./home.ts";
import type { Input, Option } from "./verb.ts";
import type { Wallet } from "../wallet.ts";

/** Opens the vault, if the chosen identity is in it. */
export const passphraseOption = {
  "passphrase-file": {
    value: "path",
    description:
      "File with the passphrase of the vault; - for standard input. Default: WALLET_PASSPHRASE, else the terminal asks.",
  },
} as const satisfies Record<string, Option>;

/** The options of every verb that acts for an identity. */
export const identityOptions = {
  as: {
    value: "name",
    description: "The identity to act as: one of the vault, else one of the demo world.",
  },
  ...passphraseOption,
} as const satisfies Record<string, Option>;

/** Works with the wallet of the chosen identity, and ends its sessions afterwards. */
export async function withWallet<T>(
  home: Home,
  input: Input,
  work: (wallet: Wallet) => Promise<T>,
): Promise<T> {
  const wallet = await openHomeWallet(home, {
    name: input.optional("as"),
    passphraseFile: input.optional("passphrase-file"),
  });
  try {
    return await work(wallet);
  } finally {
    await wallet.close();
  }
}

import { identityOptions, withWallet } from "./identity-options.ts";
import type { Verb } from "./verb.ts";

/** The verbs for live logins. */
export const loginVerbs: readonly Verb[] = [
  {
    name: "logins",
    summary: "List the live logins of an identity.",
    options: identityOptions,
    example: "logins --as alice",
    async run(home, input) {
      const items = await withWallet(home, input, async (wallet) => wallet.logins());
      return { value: { items } };
    },
  },
  {
    name: "logins end",
    summary: "End a login: its browser session and its tokens.",
    parameters: { id: "The login's id, as `logins` prints it." },
    options: identityOptions,
    example: "logins end 0198c0de-0000-7000-8000-000000000000 --as alice",
    async run(home, input) {
      const id = input.text("id");
      await withWallet(home, input, async (wallet) => wallet.endLogin(id));
      return { value: { id, status: "ended" } };
    },
  },
];

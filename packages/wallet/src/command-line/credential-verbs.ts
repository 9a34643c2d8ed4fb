import type { Collection } from "../receive.ts";
import type { HeldCredential } from "../held-credential.ts";
import { identityOptions, withWallet } from "./identity-options.ts";
import type { Reply, Verb } from "./verb.ts";

/** The verbs of verified fields and of what was done with them. */
export const credentialVerbs: readonly Verb[] = [
  {
    name: "receive",
    summary:
      "Collect newly issued verified fields, and list all fields that the wallet holds, without values.",
    notes:
      "The wallet also does this before it shows a request for fields. It refuses a value that the issuer did not commit to.",
    options: identityOptions,
    example: "receive --as alice",
    run: async (home, input) =>
      withWallet(home, input, async (wallet) => {
        const collection = await wallet.receive();
        return replyOf(collection, await wallet.credentials());
      }),
  },
  {
    name: "history",
    summary:
      "List what was approved and declined, newest first: who asked, for what and when, never values.",
    notes: "An answer is listed as sent until the receiver confirms that it accepted it.",
    options: identityOptions,
    example: "history --as alice",
    async run(home, input) {
      const items = await withWallet(home, input, async (wallet) => wallet.history());
      return { value: { items } };
    },
  },
  {
    name: "receipt",
    summary: "Print the settlement receipt of an approved request.",
    notes:
      "The receipt says what the user consented to and shows that this is on chain; it has no values.",
    parameters: { id: "The id, as `history` prints it." },
    options: identityOptions,
    example: "receipt 5f2c.. --as alice",
    run: async (home, input) => ({
      value: await withWallet(home, input, async (wallet) => wallet.receipt(input.text("id"))),
    }),
  },
  {
    name: "email add",
    summary: "Verify an e-mail address: have a code sent to it.",
    parameters: { address: "The e-mail address." },
    options: identityOptions,
    example: "email add alice@example.com --as alice",
    async run(home, input) {
      const value = await withWallet(home, input, async (wallet) =>
        wallet.addEmail(input.text("address")),
      );
      return { value };
    },
  },
  {
    name: "email confirm",
    summary: "Send back the code from the e-mail, and collect the verified address.",
    parameters: {
      id: "The verificationId, as `email add` printed it.",
      code: "The code from the e-mail.",
    },
    options: identityOptions,
    example: "email confirm 0198c0de-0000-7000-8000-000000000000 123456 --as alice",
    async run(home, input) {
      const { credentialId } = await withWallet(home, input, async (wallet) =>
        wallet.confirmEmail(input.text("id"), input.text("code")),
      );
      return { value: { credentialId } };
    },
  },
];

function replyOf({ received, refused }: Collection, held: readonly HeldCredential[]): Reply {
  const value = { received: received.map(({ id }) => id), items: held.map(withoutValues), refused };
  if (refused.length === 0) return { value };
  const line = `${refused.length} credential(s) were not taken: their issuer did not commit to them, they differ from the held ones with the same id, or they are more than a wallet can hold`;
  return { value, status: 1, line };
}

function withoutValues({ fields, ...credential }: HeldCredential): Record<string, unknown> {
  return { ...credential, fields: fields.map(({ field, expiresAt }) => ({ field, expiresAt })) };
}

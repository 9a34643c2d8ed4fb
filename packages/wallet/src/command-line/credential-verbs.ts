import type { Collection } from "../receive.ts";
import type { HeldCredential } from "../held-credential.ts";
import { identityOptions, withWallet } from "./identity-options.ts";
import type { Reply, Verb } from "./verb.ts";

/** The verbs of verified fields and of what was done with them. */
export const credentialVerbs: readonly Verb[] = [
  {
    name: "receive",
    summary:
      "Collects verified fields that were issued, and lists all that are held, without values.",
    notes:
      "This happens automatically before a request for fields is shown. A value that its issuer did not commit to is refused.",
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
    summary: "Lists what was approved and declined, newest first: who, what, when, never values.",
    notes:
      "An answer that was sent is listed as sent until its receiver confirms that it was accepted.",
    options: identityOptions,
    example: "history --as alice",
    async run(home, input) {
      const items = await withWallet(home, input, async (wallet) => wallet.history());
      return { value: { items } };
    },
  },
  {
    name: "receipt",
    summary: "Prints the settlement receipt of a request that was approved.",
    notes: "It says what was consented to, and that this is on chain; without values.",
    parameters: { id: "The id that `history` shows." },
    options: identityOptions,
    example: "receipt 5f2c.. --as alice",
    run: async (home, input) => ({
      value: await withWallet(home, input, async (wallet) => wallet.receipt(input.text("id"))),
    }),
  },
  {
    name: "email add",
    summary: "Has a code sent to an e-mail address, to verify it.",
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
    summary: "Sends back the code from the e-mail, and collects the verified address.",
    parameters: { id: "The verificationId that `email add` printed.", code: "The code." },
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
  const line = `${refused.length} credential(s) are not what their issuer committed to, not the held ones of their id, or more than a wallet holds, and were left`;
  return { value, status: 1, line };
}

function withoutValues({ fields, ...credential }: HeldCredential): Record<string, unknown> {
  return { ...credential, fields: fields.map(({ field, expiresAt }) => ({ field, expiresAt })) };
}

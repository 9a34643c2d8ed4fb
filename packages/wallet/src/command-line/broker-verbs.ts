import { addBroker, listBrokers, removeBroker } from "../brokers.ts";
import { WalletRefusal } from "../refusal.ts";
import type { Verb } from "./verb.ts";

const url = { url: "The broker's origin, such as https://login.example." };

/** The verbs of the list of brokers. */
export const brokerVerbs: readonly Verb[] = [
  {
    name: "broker list",
    summary: "List the brokers that this wallet trusts to say who asks.",
    example: "broker list",
    run: async ({ storage, seededBrokers }) => ({
      value: { brokers: await listBrokers(storage, seededBrokers) },
    }),
  },
  {
    name: "broker add",
    summary: "Trust a broker to say who asks.",
    notes:
      "From then on, every name that the broker vouches for is shown as verified: add only a broker that you trust.",
    parameters: url,
    options: {
      yes: {
        description: "Confirm. Without this option the verb is refused and says what would happen.",
      },
    },
    example: "broker add https://login.example --yes",
    async run({ storage }, input) {
      if (!input.flag("yes"))
        throw new WalletRefusal(
          "not_accepted",
          "every name this broker vouches for will be shown as verified; repeat with --yes",
        );
      return { value: { added: await addBroker(storage, input.text("url")) } };
    },
  },
  {
    name: "broker remove",
    summary: "Remove a broker from the list of trusted brokers.",
    notes: "The broker of the demo world, which the wallet came with, cannot be removed.",
    parameters: url,
    example: "broker remove https://login.example",
    async run({ storage, seededBrokers }, input) {
      const listed = await listBrokers(storage, seededBrokers);
      const removed = await removeBroker(storage, input.text("url"));
      if (seededBrokers.includes(removed))
        throw new WalletRefusal(
          "invalid_input",
          `${removed} came with this wallet and stays on the list`,
        );
      // Whoever misspells it must not believe that it vouches for nobody any more.
      if (!listed.includes(removed))
        throw new WalletRefusal(
          "not_found",
          `${removed} is not on the list; see wallet broker list`,
        );
      return { value: { removed } };
    },
  },
];

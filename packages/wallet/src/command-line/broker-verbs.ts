import { addBroker, listBrokers, removeBroker } from "../brokers.ts";
import { WalletRefusal } from "../refusal.ts";
import type { Verb } from "./verb.ts";

const url = { url: "The broker's origin, such as https://login.example." };

/** The verbs of the list of brokers. */
export const brokerVerbs: readonly Verb[] = [
  {
    name: "broker list",
    summary: "Lists the brokers that may say who asks.",
    example: "broker list",
    run: async ({ storage, seededBrokers }) => ({
      value: { brokers: await listBrokers(storage, seededBrokers) },
    }),
  },
  {
    name: "broker add",
    summary: "Lets a broker say who asks.",
    notes:
      "Whatever it vouches for is shown as verified from then on: add only a broker that you trust.",
    parameters: url,
    options: { yes: { description: "Confirm it." } },
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
    summary: "Takes a broker off the list again.",
    notes: "The broker that the wallet came with, that of the demo world, stays.",
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
        throw new WalletRefusal("not_found", `${removed} is not on the list; see broker list`);
      return { value: { removed } };
    },
  },
];

import { makeSyntheticIdentity, type Play, plays, simulate } from "../kyc/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, type Verb } from "./verb.ts";

const summaries: Record<Play, string> = {
  approve:
    "Play the user of a sandbox order: share what is required, or what is optional if nothing is required.",
  decline: "Play the user of a sandbox order: decline.",
  expire: "Let the time of a sandbox order be over.",
  "wrong-data":
    "Play the user of a sandbox order: sign data that does not match, until the order fails.",
  revoke: "Revoke the fields that a sandbox order asked for.",
};

export const simulateVerbs: readonly Verb[] = [
  {
    name: "simulate identity",
    summary: "Make an identity with verified fields for a sandbox domain.",
    notes: "Its fields count as soon as a running service has attested them, seconds later.",
    options: { domain: { value: "uuid", required: true, description: "The sandbox domain." } },
    example: `simulate identity --domain ${exampleIds.domain}`,
    run: async (shell, input) =>
      shell.withContext(async (ctx) => makeSyntheticIdentity(ctx, input.text("domain"), actor)),
  },
  ...plays.map((play): Verb => ({
    name: `simulate ${play}`,
    summary: summaries[play],
    notes:
      "Only for identities made by `simulate identity`, and orders of their domain. The service must be running at BASE_URL.",
    parameters: [{ name: "order", description: "Its referenceKey." }],
    example: `simulate ${play} ${exampleIds.order}`,
    run: async (shell, input) =>
      shell.withContext(async (ctx) => simulate({ ...ctx, fetch }, input.text("order"), play)),
  })),
];

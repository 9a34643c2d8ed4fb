import { waitForAttestation } from "../credentials/index.ts";
import { makeSyntheticIdentity, type Play, plays, simulate } from "../kyc/index.ts";
import { attestationNote, attestationOptions, readPatience } from "./attestation-wait.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, type Verb } from "./verb.ts";

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
    notes: `${attestationNote} They end after a year: make another then.`,
    options: {
      domain: { value: "uuid", required: true, description: "The sandbox domain." },
      ...attestationOptions,
    },
    example: `simulate identity --domain ${exampleIds.domain}`,
    run: async (shell, input) => {
      const patienceSeconds = readPatience(input);
      return shell.withContext(async (ctx) => {
        const domain = input.text("domain");
        const { credentials, ...made } = await makeSyntheticIdentity(ctx, domain, actor);
        const attested = await waitForAttestation(ctx, credentials, patienceSeconds);
        return { ...made, attested };
      });
    },
  },
  ...plays.map((play): Verb => ({
    name: `simulate ${play}`,
    summary: summaries[play],
    notes:
      "Only for identities made by `simulate identity`, and orders of their domain. The service must be running at BASE_URL.",
    parameters: [{ name: "order", description: "Its referenceKey." }],
    example: `simulate ${play} ${exampleIds.order}`,
    run: inContext(async (ctx, input) => simulate({ ...ctx, fetch }, input.text("order"), play)),
  })),
];

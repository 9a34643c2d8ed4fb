import { waitForAttestation } from "../credentials/index.ts";
import { makeSyntheticIdentity, type Play, plays, simulate } from "../kyc/index.ts";
import { attestationNote, attestationOptions, readPatience } from "./attestation-wait.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, type Verb } from "./verb.ts";

const summaries: Record<Play, string> = {
  approve:
    "Act as the user of a sandbox order: share the required fields, or the optional ones if none is required.",
  decline: "Act as the user of a sandbox order: decline it.",
  expire: "Make a sandbox order expire.",
  "wrong-data":
    "Act as the user of a sandbox order: sign data that does not match, until the order fails.",
  revoke:
    "Revoke the credentials that hold what a sandbox order asked for, with all fields of each.",
};

export const simulateVerbs: readonly Verb[] = [
  {
    name: "simulate identity",
    summary: "Create an identity with verified fields for a sandbox domain.",
    notes: `${attestationNote} The fields end after a year; create another identity then.`,
    options: {
      domain: { value: "uuid", required: true, description: "The UUID of the sandbox domain." },
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
      "Works only for identities created by `simulate identity`, and for orders of their domain. The service must be running at BASE_URL.",
    parameters: [{ name: "order", description: "The order's referenceKey." }],
    example: `simulate ${play} ${exampleIds.order}`,
    run: inContext(async (ctx, input) => simulate({ ...ctx, fetch }, input.text("order"), play)),
  })),
];

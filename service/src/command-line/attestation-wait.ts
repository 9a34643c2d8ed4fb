import { type Input, type Option, wholeNumber } from "./verb.ts";

/** Far longer than the embedded chain takes, but tolerable if no service is running. */
const patienceSeconds = 20;

/** A note for the help of verbs that wait until what they issued is attested. */
export const attestationNote =
  "The fields count once a running service has attested them. The verb waits for that; `attested` in the result says whether it happened in time.";

export const attestationOptions: Readonly<Record<string, Option>> = {
  wait: {
    value: "seconds",
    description: `The longest time to wait for the attestation. Default: ${patienceSeconds}.`,
  },
};

/** @throws {UsageError} if `--wait` is no number of seconds */
export function readPatience(input: Input): number {
  return wholeNumber("--wait", input.optional("wait") ?? String(patienceSeconds));
}

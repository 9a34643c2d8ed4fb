import { type Input, type Option, wholeNumber } from "./verb.ts";

/** Far longer than the embedded chain takes, but tolerable if no service is running. */
const patienceSeconds = 20;

/** A note for the help of verbs that wait until what they issued is attested. */
export const attestationNote =
  "Its fields count as soon as a running service has attested them: the verb waits for that, and `attested` says whether it came.";

export const attestationOptions: Readonly<Record<string, Option>> = {
  wait: { value: "seconds", description: `How long to wait at most. Default: ${patienceSeconds}.` },
};

/** @throws {UsageError} if `--wait` is no number of seconds */
export function readPatience(input: Input): number {
  return wholeNumber("--wait", input.optional("wait") ?? String(patienceSeconds));
}

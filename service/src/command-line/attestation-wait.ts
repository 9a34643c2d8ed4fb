import { type Input, type Option, wholeNumber } from "./verb.ts";

/** Far longer than the embedded chain takes, and short enough where no service runs. */
const patienceSeconds = 20;

/** What verbs note that end only when what they made counts. */
export const attestationNote =
  "Its fields count as soon as a running service has attested them: the verb waits for that, and `attested` says whether it came.";

export const attestationOptions: Readonly<Record<string, Option>> = {
  wait: { value: "seconds", description: `How long to wait at most. Default: ${patienceSeconds}.` },
};

/** @throws {UsageError} if `--wait` is no number of seconds */
export function readPatience(input: Input): number {
  return wholeNumber("--wait", input.optional("wait") ?? String(patienceSeconds));
}

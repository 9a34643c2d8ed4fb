export { describeOption, spell, usageOf } from "./help.ts";
export { runCommandLine } from "./run.ts";
export type { Verb } from "./verb.ts";
export { verbs } from "./verbs.ts";

export { describeOption, helpOf, spell, usageOf } from "./help.ts";
export { runCommandLine, type Terminal } from "./run.ts";
export type { Option, Verb } from "./verb.ts";
export { verbs } from "./verbs.ts";

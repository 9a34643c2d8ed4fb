import type { Verb } from "./verb.ts";

export const keyVerbs: readonly Verb[] = [];

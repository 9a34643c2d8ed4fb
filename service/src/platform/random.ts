import { randomBytes, randomInt } from "node:crypto";
import type { Random } from "./context.ts";

/** Chance from the operating system's generator, for secrets and everything else. */
export function createRandom(): Random {
  return {
    bytes: (length) => randomBytes(length),
    below: (bound) => randomInt(bound),
    fraction: () => randomBytes(4).readUInt32BE() / 2 ** 32,
  };
}

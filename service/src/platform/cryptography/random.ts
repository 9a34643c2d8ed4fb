import { randomBytes, randomFillSync, randomInt } from "node:crypto";
import type { Random } from "../context.ts";

/** Most draws are 16 or 32 bytes: many come out of one call to the generator. */
const poolBytes = 4096;
const pooledMax = 64;

/** Random bytes of the operating system's generator, for secrets and everything else. No byte is used twice. */
export function createRandom(): Random {
  const pool = Buffer.alloc(poolBytes);
  let used = poolBytes;
  const draw = (length: number): Buffer => {
    if (length > pooledMax) return randomBytes(length);
    if (used + length > poolBytes) {
      randomFillSync(pool);
      used = 0;
    }
    const drawn = Buffer.alloc(length);
    pool.copy(drawn, 0, used, used + length);
    // Bytes that have become a secret do not stay in the pool.
    pool.fill(0, used, used + length);
    used += length;
    return drawn;
  };
  return {
    bytes: draw,
    below: (bound) => randomInt(bound),
    fraction: () => draw(4).readUInt32BE() / 2 ** 32,
  };
}

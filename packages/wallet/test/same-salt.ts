import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";

const { randomBytes } = crypto;
const salt = Buffer.from("one salt for all");

/**
 * Random bytes for what a test seals, except that all salts are the same; nothing else has their length. So the key of a
 * passphrase, which takes a third of a second, is computed once in a test run.
 */
export const sameSalt = (length: number): Uint8Array =>
  Uint8Array.from(length === salt.length ? salt : randomBytes(length));

/** The same for calls of the command line within this process, which take theirs from Node; until it is disposed. */
export function shareSalts(): Disposable {
  const shared = mock.method(crypto, "randomBytes", (length: number) =>
    Buffer.from(sameSalt(length)),
  );
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      shared.mock.restore();
      syncBuiltinESMExports();
    },
  };
}

import { randomBytes } from "node:crypto";

const salt = randomBytes(16);

/**
 * Random bytes for what a test seals, but the salts of a process, alone of this length, are all the same one: the key of
 * a passphrase, a third of a second of computing, is then computed once in a test run.
 */
export const sameSalt = (length: number): Uint8Array =>
  Uint8Array.from(length === salt.length ? salt : randomBytes(length));

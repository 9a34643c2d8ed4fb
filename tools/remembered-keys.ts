// Stands for `node:crypto` where the service makes its keys, in the processes of a test run: databases that never meet
// have the same few RSA keys, each of which took 50 to 160 ms of CPU time to make.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair as generate,
  type KeyPairKeyObjectResult,
} from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

export * from "node:crypto";

/** More than are in use in a database at a time: one that signs and its successor, and what they signed before. */
const keysTotal = 4;
const make = promisify(generate);
let directory = "";
let made = 0;

/** Keys are shared with all processes that keep theirs in this directory. */
export function keepKeysIn(path: string): void {
  directory = path;
}

async function makeRsa(options: { modulusLength: number }): Promise<KeyPairKeyObjectResult> {
  made += 1;
  const path = join(directory, `rsa-${JSON.stringify(options)}-${made % keysTotal}.pem`);
  if (existsSync(path)) {
    const privateKey = createPrivateKey(readFileSync(path));
    return { privateKey, publicKey: createPublicKey(privateKey) };
  }
  const pair = await make("rsa", options);
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, pair.privateKey.export({ format: "pem", type: "pkcs8" }));
  renameSync(draft, path);
  return pair;
}

/** Of the forms of Node's function the one that the service uses: the promise. */
export const generateKeyPair = Object.assign(() => undefined, {
  [promisify.custom]: async (
    type: "rsa" | "ec",
    options: { modulusLength: number } & { namedCurve: string },
  ) => (type === "rsa" ? makeRsa(options) : make(type, options)),
});

// Stands for `node:crypto` where the service makes its keys, in the processes of a test run: databases that never meet
// have the same few RSA keys, each of which took 50 to 160 ms of CPU time to make.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair as generate,
  type KeyPairKeyObjectResult,
} from "node:crypto";
import { promisify } from "node:util";
import { remember } from "./remembered.ts";

export * from "node:crypto";

/**
 * More than are in use in a database at a time (one that signs and its successor, and what they signed before), even where
 * keys of another database are made in between.
 */
const keysTotal = 8;
const make = promisify(generate);
let made = 0;

async function makeRsa(options: { modulusLength: number }): Promise<KeyPairKeyObjectResult> {
  made += 1;
  const der = await remember(`rsa-${JSON.stringify(options)}-${made % keysTotal}`, async () => {
    const pair = await make("rsa", options);
    return pair.privateKey.export({ format: "der", type: "pkcs8" });
  });
  const privateKey = createPrivateKey({ key: Buffer.from(der), format: "der", type: "pkcs8" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** Of the forms of Node's function the one that the service uses: the promise. */
export const generateKeyPair = Object.assign(() => undefined, {
  [promisify.custom]: async (
    type: "rsa" | "ec",
    options: { modulusLength: number } & { namedCurve: string },
  ) => (type === "rsa" ? makeRsa(options) : make(type, options)),
});

// Replaces `node:crypto` where the service makes its keys, in the processes of a test run: an RSA key takes 50 to 160 ms
// of CPU time, so databases, which never meet, get the same few keys.
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
 * More than a database has at a time (the key that signs, its successor and retired ones), so that it never gets one
 * twice, even if keys of another database are made in between.
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

/** Only the promisified form of Node's function, which is the one that the service uses. */
export const generateKeyPair = Object.assign(() => undefined, {
  [promisify.custom]: async (
    type: "rsa" | "ec",
    options: { modulusLength: number } & { namedCurve: string },
  ) => (type === "rsa" ? makeRsa(options) : make(type, options)),
});

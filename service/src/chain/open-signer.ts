import type { Ctx } from "../platform/context.ts";
import { addressOfPrivateKey, signDigest } from "../platform/cryptography/secp256k1.ts";
import { placeIn } from "../platform/cryptography/seal.ts";
import { digestOf, type Signer, withSignature } from "./signer.ts";
import * as store from "./signer-key-store.ts";

/** Opens the configured signer; without one (profile `dev` only), a key that was made at the first start. */
export async function openSigner(ctx: Ctx): Promise<Signer> {
  const { signerKey, signerUrl, signerAddress } = ctx.config;
  if (signerUrl !== null && signerAddress !== null) {
    const { openRemoteSigner } = await import("./remote-signer.ts");
    return openRemoteSigner({ url: signerUrl, address: signerAddress });
  }
  const key =
    signerKey === null ? await readOrMakeKey(ctx) : Uint8Array.from(Buffer.from(signerKey, "hex"));
  return {
    address: addressOfPrivateKey(key),
    sign: async (transaction) => withSignature(transaction, signDigest(digestOf(transaction), key)),
    [Symbol.asyncDispose]: async () => void key.fill(0),
  };
}

const keyName = "operator";
const keyPlace = placeIn(store.signerKeyColumn, keyName);

/** Processes that start together get the same key. */
async function readOrMakeKey(ctx: Ctx): Promise<Uint8Array> {
  const known = await store.findSignerKey(ctx.db, keyName);
  if (known !== null) return ctx.seal.open(known, keyPlace);
  const sealed = ctx.seal.seal(ctx.random.bytes(32), keyPlace);
  const kept = await store.keepSignerKey(ctx.db, {
    name: keyName,
    sealed,
    createdAt: ctx.clock.now(),
  });
  return ctx.seal.open(kept, keyPlace);
}

// JWTs as clients make them, good and bad.
import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { ClientKey } from "./party.ts";
import type { JwtChange } from "./row.ts";
import type { Scene } from "./scene.ts";

export function newKey(): ClientKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { privateKey, publicKey, kid: "key-1" };
}

export interface Jwt {
  readonly header: Record<string, unknown>;
  readonly claims: Record<string, unknown>;
}

/** Signs a good JWT after the change. */
export function makeJwt(
  scene: Scene,
  good: Jwt,
  { key, change }: { key: ClientKey; change: JwtChange },
): string {
  if (change.text !== undefined) return change.text;
  const changed = typeof change.claims === "function" ? change.claims(scene) : change.claims;
  const header = { ...good.header, ...change.header };
  const input = `${encode(header)}.${encode({ ...good.claims, ...changed })}`;
  return `${input}.${signatureOf(input, key, change.signedBy ?? "owner")}`;
}

function signatureOf(
  input: string,
  key: ClientKey,
  by: NonNullable<JwtChange["signedBy"]>,
): string {
  if (by === "nobody") return "";
  if (by === "public") {
    const pem = key.publicKey.export({ type: "spki", format: "pem" });
    return createHmac("sha256", pem).update(input).digest("base64url");
  }
  const signer: KeyObject = by === "owner" ? key.privateKey : newKey().privateKey;
  return sign("sha256", Buffer.from(input), { key: signer, dsaEncoding: "ieee-p1363" }).toString(
    "base64url",
  );
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

import {
  createPrivateKey,
  generateKeyPair as generateKeyPairWithCallback,
  sign as signWithCallback,
} from "node:crypto";
import { promisify } from "node:util";
import type { Ctx } from "../../platform/context.ts";
import { randomId } from "../../platform/ids.ts";
import type { PublishedDocument } from "../../platform/http/published-document.ts";
import type { Place } from "../../platform/cryptography/seal.ts";
import type { SealedColumn } from "../../platform/cryptography/sealed-columns.ts";
import {
  type AttestationKey,
  currentOf,
  keySetOf,
  missingStarts,
  publishedOf,
} from "./attestation-key.ts";
import * as store from "./attestation-key-store.ts";

/** The keys that sign attestations: none of them signs anything else (decisions section 6, Attestation). */
export interface AttestationKeys {
  /** Signs claims as a JWT with the key of this moment, off the main thread: a signature takes milliseconds. */
  sign(claims: object): Promise<string>;
  /** What is published at this moment. */
  keySet(): Promise<PublishedDocument>;
  /** Makes successors and forgets what nobody can need; for a job. Does nothing before the first use. */
  rotate(): Promise<void>;
}

type KeyContext = Pick<Ctx, "config" | "db" | "clock" | "random" | "seal">;

/** `typ` of attestations: no other token of this service can pass for one. */
const attestationTyp = "kyb-attestation+jwt";
/** For how long an attestation is good, and kept. */
export const attestationSeconds = 30 * 86_400;
/** Verifiers whose clock runs behind. */
const retentionSlackSeconds = 900;
const modulusBits = 3072;
const kidBytes = 16;
/** What another process changed is seen this much later; a successor is published days before it signs. */
const freshSeconds = 15;

const generateKeyPair = promisify(generateKeyPairWithCallback);
const sign = promisify(signWithCallback);

/** What is kept sealed of the keys. */
export const attestationKeySealedColumns: readonly SealedColumn[] = [
  { table: "attestation_key", idColumn: "kid", column: "private_sealed" },
];

/** The keys of this installation. Making one takes a second of one core, so the first use makes them, not the start. */
export function createAttestationKeys(ctx: KeyContext): AttestationKeys {
  let keys: readonly AttestationKey[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  const read = async (): Promise<void> => {
    keys = await loadKeys(ctx, keys);
    readAt = ctx.clock.now();
  };
  const follow = async (): Promise<void> => {
    const now = ctx.clock.now();
    if (now < readAt || now >= readAt + freshSeconds) await read();
    const { current } = missingStarts(keys, planOf(ctx));
    if (current === null) return;
    await store.insertKey(ctx.db, await makeKey(ctx, current));
    await read();
  };
  let following: Promise<void> | null = null;
  // Many at once wait for one: a key is made once in this process, and other processes take the same slot.
  const refresh = async (): Promise<void> => {
    following ??= follow().finally(() => {
      following = null;
    });
    await following;
  };
  return {
    async sign(claims) {
      // Whoever signs holds a connection for its transaction: where all of them do, none is left to look for keys. The job
      // reads them, and a successor is known long before it signs.
      if (currentOf(keys, ctx.clock.now()) === null) await refresh();
      const key = currentOf(keys, ctx.clock.now());
      if (key === null) throw new Error("no key signs attestations at this moment");
      return signJwt(key, claims);
    },
    async keySet() {
      await refresh();
      return keySetOf(publishedOf(keys, { now: ctx.clock.now(), retentionSeconds }));
    },
    async rotate() {
      await read();
      if (keys.length === 0) return;
      const { current, next } = missingStarts(keys, planOf(ctx));
      for (const startsAt of [current, next])
        if (startsAt !== null) await store.insertKey(ctx.db, await makeKey(ctx, startsAt));
      await store.purgeKeys(ctx.db, ctx.clock.now() - retentionSeconds);
      await read();
    },
  };
}

const retentionSeconds = attestationSeconds + retentionSlackSeconds;

function planOf(ctx: KeyContext): { now: number; lifetimeSeconds: number } {
  return { now: ctx.clock.now(), lifetimeSeconds: ctx.config.keyLifetimeSeconds };
}

/** RFC 7515 section 7.1: header and claims in base64url, then RSASSA-PKCS1-v1_5 with SHA-256 over both. */
async function signJwt(key: AttestationKey, claims: object): Promise<string> {
  const header = encode({ alg: "RS256", typ: attestationTyp, kid: key.kid });
  const input = `${header}.${encode(claims)}`;
  const signature = await sign("sha256", Buffer.from(input), key.privateKey);
  return `${input}.${signature.toString("base64url")}`;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

async function makeKey(ctx: KeyContext, startsAt: number): Promise<store.AttestationKeyRow> {
  const { privateKey, publicKey } = await generateKeyPair("rsa", { modulusLength: modulusBits });
  const kid = randomId(ctx.random, kidBytes);
  const plain = privateKey.export({ format: "der", type: "pkcs8" });
  const publicJwk = publicKey.export({ format: "jwk" }) as Record<string, string>;
  const privateSealed = ctx.seal.seal(plain, placeOf(kid));
  return { kid, publicJwk, privateSealed, createdAt: ctx.clock.now(), startsAt };
}

/** Keys that are known already are kept as they are: opening one costs a decryption. */
async function loadKeys(
  ctx: KeyContext,
  known: readonly AttestationKey[],
): Promise<AttestationKey[]> {
  const rows = await store.listKeys(ctx.db);
  return rows.map((row) => known.find(({ kid }) => kid === row.kid) ?? openKey(ctx, row));
}

function openKey(ctx: KeyContext, row: store.AttestationKeyRow): AttestationKey {
  const { kid, publicJwk, startsAt } = row;
  const der = ctx.seal.open(row.privateSealed, placeOf(kid));
  return {
    kid,
    publicJwk,
    startsAt,
    privateKey: createPrivateKey({ key: der, format: "der", type: "pkcs8" }),
  };
}

function placeOf(kid: string): Place {
  return { table: "attestation_key", id: kid, column: "private_sealed" };
}

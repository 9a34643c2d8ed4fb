import {
  createPrivateKey,
  generateKeyPair as generateKeyPairWithCallback,
  type KeyObject,
  sign as signWithCallback,
} from "node:crypto";
import { promisify } from "node:util";
import { isClockRight } from "../../platform/clock.ts";
import type { Ctx } from "../../platform/context.ts";
import type { Queryable } from "../../platform/database/db.ts";
import {
  currentOf,
  type KeyPlan,
  planKeys,
  publishedOf,
  type ScheduledKey,
} from "../../platform/cryptography/key-schedule.ts";
import { randomId } from "../../platform/ids.ts";
import { type PublishedDocument, serialiseKeySet } from "../../platform/http/published-document.ts";
import { placeIn, type SealedColumn } from "../../platform/cryptography/seal.ts";
import * as store from "./attestation-key-store.ts";

/** The keys that sign attestations, and nothing else (decisions section 6, Attestation). */
export interface AttestationKeys {
  /**
   * Signs claims as a JWT with the current key, off the main thread, since a signature takes milliseconds. Locks the
   * key, so that it cannot be revoked before the caller's transaction ends.
   */
  sign(tx: Queryable, claims: object): Promise<string>;
  /** The key set to publish now. */
  keySet(): Promise<PublishedDocument>;
  /** Makes successors, and deletes keys that are no longer needed; for a job. Nothing before the first use. */
  rotate(): Promise<void>;
}

interface AttestationKey extends ScheduledKey {
  readonly algorithm: "RS256";
  readonly privateKey: KeyObject;
  readonly publicJwk: Readonly<Record<string, string>>;
}

type KeyContext = Pick<Ctx, "config" | "db" | "clock" | "random" | "seal">;

/** `typ` of attestations, so that no other token of this service can be mistaken for one. */
const attestationTyp = "kyb-attestation+jwt";
/** How long an attestation is valid, and stored. */
export const attestationSeconds = 30 * 86_400;
/** Slack for verifiers whose clock is slow. */
const retentionSlackSeconds = 900;
const modulusBits = 3072;
const kidBytes = 16;
/**
 * Keys are read again after this time. A change by another process may be seen that much later, since a successor is
 * published days before it signs.
 */
const freshSeconds = 15;

const generateKeyPair = promisify(generateKeyPairWithCallback);
const sign = promisify(signWithCallback);

export const attestationKeyColumn: SealedColumn = {
  table: "attestation_key",
  idColumn: "kid",
  column: "private_sealed",
};

/** The keys of this installation. The first use makes them, not the start, because that takes a second of one core. */
export function createAttestationKeys(ctx: KeyContext): AttestationKeys {
  let keys: readonly AttestationKey[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  const read = async (): Promise<void> => {
    keys = await loadKeys(ctx, ctx.db, keys);
    readAt = ctx.clock.now();
  };
  const follow = async (): Promise<void> => {
    const now = ctx.clock.now();
    if (now < readAt || now >= readAt + freshSeconds) await read();
    if (currentOf(keys, now) !== null) return;
    const { start, make } = planOf(ctx, keys);
    if (start !== null) await store.startKey(ctx.db, start, now);
    else for (const startsAt of make.slice(0, 1)) await addKey(ctx, startsAt);
    await read();
  };
  let following: Promise<void> | null = null;
  // Concurrent calls share one refresh, so that this process makes a key once; between processes the slot in the table
  // decides.
  const refresh = async (): Promise<void> => {
    following ??= follow().finally(() => {
      following = null;
    });
    await following;
  };
  return {
    async sign(tx, claims) {
      // Keys are only read here if there is none to sign with; otherwise the job reads them in time. The caller holds a
      // connection for its transaction: if all of the pool are held that way, none is left to read keys, a deadlock.
      if (currentOf(keys, ctx.clock.now()) === null) await refresh();
      const known = currentOf(keys, ctx.clock.now());
      if (known !== null && (await store.holdKey(tx, known.kid))) return signJwt(known, claims);
      keys = await loadKeys(ctx, tx, keys);
      const key = currentOf(keys, ctx.clock.now());
      if (key === null || !(await store.holdKey(tx, key.kid)))
        throw new Error("no key signs attestations at this moment");
      return signJwt(key, claims);
    },
    async keySet() {
      await refresh();
      return serialiseKeySet(publishedOf(keys, { now: ctx.clock.now(), retentionSeconds }));
    },
    async rotate() {
      await read();
      // A process whose clock is wrong must not retire keys that all others sign with.
      if (keys.length === 0 || !(await isClockRight(ctx.db, ctx.clock))) return;
      const { start, make } = planOf(ctx, keys);
      if (start !== null) await store.startKey(ctx.db, start, ctx.clock.now());
      for (const startsAt of make) await addKey(ctx, startsAt);
      await store.purgeKeys(ctx.db, ctx.clock.now() - retentionSeconds);
      await read();
    },
  };
}

const retentionSeconds = attestationSeconds + retentionSlackSeconds;

function planOf({ clock, config }: KeyContext, keys: readonly AttestationKey[]): KeyPlan {
  return planKeys(keys, { now: clock.now(), lifetimeSeconds: config.keyLifetimeSeconds });
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

async function addKey(ctx: KeyContext, startsAt: number): Promise<void> {
  const { privateKey, publicKey } = await generateKeyPair("rsa", { modulusLength: modulusBits });
  const kid = randomId(ctx.random, kidBytes);
  const plain = privateKey.export({ format: "der", type: "pkcs8" });
  const publicJwk = publicKey.export({ format: "jwk" }) as Record<string, string>;
  const privateSealed = ctx.seal.seal(plain, placeIn(attestationKeyColumn, kid));
  const createdAt = ctx.clock.now();
  await store.insertKey(ctx.db, { kid, publicJwk, privateSealed, createdAt, startsAt });
}

/** Reads all keys. Opened ones are reused, since opening one takes a decryption; only their start may be new. */
async function loadKeys(
  ctx: KeyContext,
  db: Queryable,
  known: readonly AttestationKey[],
): Promise<AttestationKey[]> {
  const rows = await store.listKeys(db);
  return rows.map(({ privateSealed, ...row }) => ({
    kid: row.kid,
    algorithm: "RS256",
    publicJwk: row.publicJwk,
    startsAt: row.startsAt,
    privateKey:
      known.find(({ kid }) => kid === row.kid)?.privateKey ?? openKey(ctx, row.kid, privateSealed),
  }));
}

function openKey(ctx: KeyContext, kid: string, privateSealed: Buffer): KeyObject {
  const der = ctx.seal.open(privateSealed, placeIn(attestationKeyColumn, kid));
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

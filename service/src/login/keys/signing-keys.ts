import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair as generateKeyPairWithCallback,
} from "node:crypto";
import { promisify } from "node:util";
import { isClockRight } from "../../platform/clock.ts";
import { accessTokenSecondsMax } from "../../platform/config/config.ts";
import type { Ctx } from "../../platform/context.ts";
import { randomId } from "../../platform/ids.ts";
import { currentOf, planKeys, publishedOf } from "../../platform/cryptography/key-schedule.ts";
import { type PublishedDocument, serialiseKeySet } from "../../platform/http/published-document.ts";
import { placeIn, type SealedColumn } from "../../platform/cryptography/seal.ts";
import { accessTokenTyp, headerSegment, idTokenTyp } from "./jwt.ts";
import {
  algorithmOf,
  keyPurposes,
  type KeyPurpose,
  type KeySetName,
  keySetOf,
  keysOf,
  type SigningKey,
} from "./signing-key.ts";
import * as store from "./signing-key-store.ts";

/** The signing keys of this installation, in memory; every process follows their changes. */
export interface SigningKeys extends AsyncDisposable {
  /** The key that signs at this moment. */
  current(purpose: KeyPurpose): SigningKey;
  /** The login key whose tokens of this `typ` begin with this header segment; null for any other text. */
  findByHeader(segment: string, typ: string): SigningKey | null;
  /** The published keys of a set at this moment. */
  keySet(set: KeySetName): PublishedDocument;
  /** Reads the keys again; done by itself on every notification. */
  refresh(): Promise<void>;
}

type KeyContext = Pick<
  Ctx,
  "config" | "db" | "clock" | "random" | "seal" | "notifications" | "log"
>;

const channel = "signing-key";
const generateKeyPair = promisify(generateKeyPairWithCallback);
const modulusBits = 2048;
const kidBytes = 16;
/** For verifiers whose clock runs behind. */
const retentionSlackSeconds = 900;
/**
 * How long a key stays published after its successor has started. Counts the longest lifetime that a setting allows,
 * since another process may have issued tokens under its own setting. Request objects, which wallets verify, live less:
 * an offer is open for an hour at most.
 */
const retentionSeconds = accessTokenSecondsMax + retentionSlackSeconds;

/** Derived from the keys; valid until the next of them starts or retires. */
interface Snapshot {
  readonly validFrom: number;
  readonly validUntil: number;
  readonly current: ReadonlyMap<KeyPurpose, SigningKey>;
  readonly sets: Readonly<Record<KeySetName, PublishedDocument>>;
}

/** Opens the keys, making those that are missing. @throws {SealBroken} when the configured master keys do not open them */
export async function openSigningKeys(ctx: KeyContext): Promise<SigningKeys> {
  await ensureKeys(ctx);
  let keys: readonly SigningKey[] = [];
  let byHeader: ReadonlyMap<string, SigningKey> = new Map();
  let snapshot: Snapshot | null = null;
  const use = (given: readonly SigningKey[]): void => {
    keys = given;
    byHeader = indexByHeader(keys);
    snapshot = null;
  };
  const read = async (): Promise<void> => {
    const rows = await store.listKeys(ctx.db);
    // Revoked keys go before any key is opened: if one cannot be, the revoked ones must not stay in use.
    use(keys.filter(({ kid }) => rows.some((row) => row.kid === kid)));
    use(openKeys(ctx, rows, keys));
  };
  let reading: Promise<void> = Promise.resolve();
  // One read after the other: of two at once, the older could finish last and bring a revoked key back.
  const refresh = async (): Promise<void> => {
    reading = reading.then(read, read);
    return reading;
  };
  const present = (): Snapshot => {
    const now = ctx.clock.now();
    if (snapshot === null || now < snapshot.validFrom || now >= snapshot.validUntil)
      snapshot = takeSnapshot(keys, now);
    return snapshot;
  };
  const unsubscribe = await ctx.notifications.subscribe(channel, refresh);
  await refresh();
  return {
    current(purpose) {
      const key = present().current.get(purpose);
      if (key === undefined) throw new Error(`no signing key for ${purpose}`);
      return key;
    },
    findByHeader: (segment, typ) => {
      const key = byHeader.get(segment);
      return key !== undefined && headerSegment(key, typ) === segment ? key : null;
    },
    keySet: (set) => present().sets[set],
    refresh,
    [Symbol.asyncDispose]: async () => unsubscribe(),
  };
}

/**
 * Makes sure that every purpose has a key that signs and a published successor. Runs at the start and by a job, in any
 * number of processes at once.
 */
export async function ensureKeys(ctx: KeyContext): Promise<void> {
  const known = await store.listKeys(ctx.db);
  // A process with a wrong clock would retire keys that all others still sign with.
  if (known.length > 0 && !(await isClockRight(ctx.db, ctx.clock))) return;
  const now = ctx.clock.now();
  const lifetimeSeconds = ctx.config.keyLifetimeSeconds;
  await Promise.all(
    keyPurposes.map(async (purpose) => {
      const plan = planKeys(keysOf(known, purpose), { now, lifetimeSeconds });
      if (plan.start !== null) await store.startKey(ctx.db, plan.start, now);
      for (const startsAt of plan.make) {
        await store.insertKey(ctx.db, await makeKey(ctx, purpose, { now, startsAt }));
      }
    }),
  );
  // An id token is accepted as a hint, though expired, for as long as its session or its tokens last.
  const { refreshAbsoluteSeconds, sessionAbsoluteSeconds } = ctx.config;
  const hintSeconds = Math.max(refreshAbsoluteSeconds, sessionAbsoluteSeconds);
  await store.purgeKeys(ctx.db, now - retentionSeconds - hintSeconds);
}

export const signingKeyColumn: SealedColumn = {
  table: "signing_key",
  idColumn: "kid",
  column: "private_sealed",
};

/** Makes a key that signs from `startsAt` on, Unix seconds, with its private part sealed; stores nothing. */
export async function makeKey(
  ctx: KeyContext,
  purpose: KeyPurpose,
  { now, startsAt }: { now: number; startsAt: number },
): Promise<store.SigningKeyRow> {
  const pair =
    algorithmOf(purpose) === "RS256"
      ? await generateKeyPair("rsa", { modulusLength: modulusBits })
      : await generateKeyPair("ec", { namedCurve: "P-256" });
  const kid = randomId(ctx.random, kidBytes);
  const plain = pair.privateKey.export({ format: "der", type: "pkcs8" });
  const publicJwk = pair.publicKey.export({ format: "jwk" }) as Record<string, string>;
  const privateSealed = ctx.seal.seal(plain, placeIn(signingKeyColumn, kid));
  return { kid, purpose, publicJwk, privateSealed, createdAt: now, startsAt };
}

/** Reuses keys that are open already: opening one again would cost a decryption and lose its cached headers. */
function openKeys(
  ctx: KeyContext,
  rows: readonly store.SigningKeyRow[],
  known: readonly SigningKey[],
): readonly SigningKey[] {
  return rows.map((row) => {
    const same = known.find((key) => key.kid === row.kid && key.startsAt === row.startsAt);
    return same ?? openKey(ctx, row);
  });
}

function openKey(ctx: KeyContext, row: store.SigningKeyRow): SigningKey {
  const der = ctx.seal.open(row.privateSealed, placeIn(signingKeyColumn, row.kid));
  return {
    kid: row.kid,
    purpose: row.purpose,
    algorithm: algorithmOf(row.purpose),
    privateKey: createPrivateKey({ key: der, format: "der", type: "pkcs8" }),
    publicKey: createPublicKey({ key: { ...row.publicJwk }, format: "jwk" }),
    publicJwk: row.publicJwk,
    startsAt: row.startsAt,
    headers: new Map(),
  };
}

/**
 * Keys by the headers of the tokens that come back to us. Access tokens are RS256 alone, so that resource servers need
 * one algorithm.
 */
function indexByHeader(keys: readonly SigningKey[]): ReadonlyMap<string, SigningKey> {
  const entries = keys.flatMap((key): [string, SigningKey][] => {
    if (keySetOf(key.purpose) !== "login") return [];
    const idToken: [string, SigningKey] = [headerSegment(key, idTokenTyp), key];
    return key.algorithm === "RS256"
      ? [idToken, [headerSegment(key, accessTokenTyp), key]]
      : [idToken];
  });
  return new Map(entries);
}

function takeSnapshot(keys: readonly SigningKey[], now: number): Snapshot {
  const current = new Map<KeyPurpose, SigningKey>();
  for (const purpose of keyPurposes) {
    const key = currentOf(keysOf(keys, purpose), now);
    if (key !== null) current.set(purpose, key);
  }
  const publishedIn = (set: KeySetName): SigningKey[] =>
    keyPurposes
      .filter((purpose) => keySetOf(purpose) === set)
      .flatMap((purpose) => publishedOf(keysOf(keys, purpose), { now, retentionSeconds }));
  const turns = keys
    .flatMap((key) => [key.startsAt, key.startsAt + retentionSeconds])
    .filter((time) => time > now);
  return {
    validFrom: now,
    validUntil: Math.min(...turns, now + retentionSeconds),
    current,
    sets: {
      login: serialiseKeySet(publishedIn("login")),
      wallet: serialiseKeySet(publishedIn("wallet")),
    },
  };
}

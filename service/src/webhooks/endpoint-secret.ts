import type { Ctx } from "../platform/context.ts";
import { uuidv7 } from "../platform/ids.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";

/** A secret that signs; receivers tell several of them apart by their versions. */
export interface Secret {
  /** `kv`, from 1; a later secret has a higher one. */
  readonly version: number;
  /** Its UTF-8 bytes are the key. */
  readonly secret: string;
}

/** A secret as it is kept. */
export interface SecretRow {
  readonly id: string;
  readonly version: number;
  readonly secretSealed: Buffer;
  /** Unix seconds; null while it is the newest. */
  readonly expiresAt: number | null;
}

/** How long the previous secret signs beside the new one (service document, Limits). */
export const overlapSeconds = 86_400;
const secretBytes = 32;

export const endpointSecretColumn: SealedColumn = {
  table: "kyb_endpoint_secret",
  idColumn: "id",
  column: "secret_sealed",
};

/** A new secret: 64 hex digits. */
export function makeSecret(
  ctx: Pick<Ctx, "clock" | "random" | "seal">,
  version: number,
): { secret: string; row: SecretRow } {
  const id = uuidv7(ctx.clock, ctx.random);
  const secret = Buffer.from(ctx.random.bytes(secretBytes)).toString("hex");
  const secretSealed = ctx.seal.seal(Buffer.from(secret), placeIn(endpointSecretColumn, id));
  return { secret, row: { id, version, secretSealed, expiresAt: null } };
}

/** Those secrets that have not expired, the newest first. @throws {SealBroken} */
export function openSecrets(
  ctx: Pick<Ctx, "seal">,
  rows: readonly SecretRow[],
  now: number,
): Secret[] {
  return rows
    .filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
    .toSorted((a, b) => b.version - a.version)
    .map(({ id, version, secretSealed }) => ({
      version,
      secret: ctx.seal.open(secretSealed, placeIn(endpointSecretColumn, id)).toString(),
    }));
}

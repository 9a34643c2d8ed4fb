import { createSecretKey, type KeyObject } from "node:crypto";
import type { Ctx } from "../context.ts";
import { mac } from "./mac.ts";
import * as store from "./installation-key-store.ts";
import { placeIn, type SealedColumn } from "./seal.ts";

/**
 * The purposes of an installation's keys, one key each, so that a value made for one purpose is invalid for another.
 */
const installationKeyNames = [
  "kyb-idempotency",
  "kyb-offer",
  "login-code",
  "login-restart",
  "refresh-token",
  "api-key",
  "wallet-challenge",
  "audit-seal",
  "session",
  "issuer-key",
  "issuer-idempotency",
  "email-code",
  "push",
] as const;

type InstallationKeyName = (typeof installationKeyNames)[number];

/**
 * The HMAC keys of this installation: 256 random bits each, the same in every process, stored sealed in the database.
 */
export interface InstallationKeys {
  hmac(name: InstallationKeyName): KeyObject;
  /** HMAC-SHA256 under the key of that name, 32 bytes. */
  mac(name: InstallationKeyName, content: string | Uint8Array): Buffer;
}

const keyBytes = 32;

export const installationKeyColumn: SealedColumn = {
  table: "installation_key",
  idColumn: "name",
  column: "sealed",
};

/**
 * Reads the keys, and makes those that are missing. Processes that start together end up with the same keys.
 *
 * @throws {SealBroken} if the configured master keys do not open them
 */
export async function openInstallationKeys(
  ctx: Pick<Ctx, "db" | "seal" | "clock" | "random">,
): Promise<InstallationKeys> {
  const known = await store.listKeys(ctx.db);
  const missing = installationKeyNames.filter((name) => known.every((row) => row.name !== name));
  const made = missing.map((name) => ({
    name,
    sealed: ctx.seal.seal(ctx.random.bytes(keyBytes), placeIn(installationKeyColumn, name)),
  }));
  if (made.length > 0) await store.insertKeys(ctx.db, made, ctx.clock.now());
  const rows = made.length > 0 ? await store.listKeys(ctx.db) : known;
  const keys = new Map(
    rows.map((row) => [
      row.name,
      createSecretKey(ctx.seal.open(row.sealed, placeIn(installationKeyColumn, row.name))),
    ]),
  );
  const hmac = (name: InstallationKeyName): KeyObject => {
    const key = keys.get(name);
    if (key === undefined) throw new Error(`the installation key ${name} is missing`);
    return key;
  };
  return { hmac, mac: (name, content) => mac(hmac(name), content) };
}

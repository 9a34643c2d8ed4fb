// A wallet of alice or bob over the fake broker, at a fixed time.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { addressOfPrivateKey, bytesOfHex, type Address } from "@svc/protocol";
import {
  WalletRefusal,
  memoryStorage,
  openIdentity,
  openWallet,
  type Concern,
  type RefusalCode,
  type Wallet,
  type WalletParts,
} from "../src/index.ts";
import { privateKeys } from "./fake-broker.ts";
import { now } from "./fake-fields.ts";

export type Name = keyof typeof privateKeys;

export function addressOf(name: Name): Address {
  return addressOfPrivateKey(bytesOfHex(privateKeys[name]) ?? new Uint8Array());
}

export async function walletOf(
  name: Name,
  brokers: readonly string[],
  changed: Partial<WalletParts> = {},
): Promise<Wallet> {
  return openWallet({
    identity: await openIdentity({ kind: "private-key", privateKey: privateKeys[name] }),
    storage: memoryStorage(),
    seededBrokers: brokers,
    fetch,
    now: async () => now,
    random: (length) => new Uint8Array(randomBytes(length)),
    ...changed,
  });
}

export async function refuses(
  work: Promise<unknown>,
  code: RefusalCode,
  pattern = /./,
): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof WalletRefusal, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  });
}

export const accepting = (...concerns: Concern[]): { accept: ReadonlySet<Concern> } => ({
  accept: new Set(concerns),
});

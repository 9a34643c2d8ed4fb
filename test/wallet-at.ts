// The wallet's own code at the service of a world, with a key of its own, and a memory that nothing survives.
import { randomBytes } from "node:crypto";
import { type Address, hexOfBytes } from "@svc/protocol";
import { memoryStorage, openIdentity, openWallet, type Wallet } from "@svc/wallet";
import type { World } from "./world.ts";

interface WalletOptions extends Partial<Parameters<typeof openWallet>[0]> {
  /** Default: a new one. */
  readonly privateKey?: Uint8Array;
}

export async function openWalletAt(
  { baseUrl, ctx }: World,
  { privateKey = randomBytes(32), ...more }: WalletOptions = {},
): Promise<{ wallet: Wallet; address: Address }> {
  const identity = await openIdentity({
    kind: "private-key",
    privateKey: hexOfBytes(privateKey),
  });
  const wallet = openWallet({
    identity,
    storage: memoryStorage(),
    seededBrokers: [baseUrl],
    fetch,
    now: async () => ctx.clock.now(),
    random: (length) => new Uint8Array(randomBytes(length)),
    ...more,
  });
  return { wallet, address: identity.address };
}

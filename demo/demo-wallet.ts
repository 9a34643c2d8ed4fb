// The wallets of the demo's people, as the first start needs them.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Hex } from "@svc/protocol";
import type { Service } from "@svc/service";
import { openIdentity, openWallet, type Wallet, type WalletStorage } from "@svc/wallet";
import { fileStorage } from "@svc/wallet/file-storage";

/** A wallet whose one broker is the demo itself. */
export async function openDemoWallet(
  { baseUrl, ctx }: Service,
  { privateKey, storage }: { privateKey: Hex; storage: WalletStorage },
): Promise<Wallet> {
  return openWallet({
    identity: await openIdentity({ kind: "private-key", privateKey }),
    storage,
    seededBrokers: [baseUrl],
    random: (length) => new Uint8Array(randomBytes(length)),
    fetch,
    now: async () => ctx.clock.now(),
  });
}

/**
 * Collects a person's verified fields into the wallet of the command line: after 30 days the service deletes fields that
 * nobody collected, and a demo world is often older, or its clock is moved.
 */
export async function collectFields(
  service: Service,
  { privateKey, directory }: { privateKey: Hex; directory: string },
): Promise<void> {
  const storage = fileStorage(join(directory, "wallet"));
  const wallet = await openDemoWallet(service, { privateKey, storage });
  try {
    await wallet.receive();
  } finally {
    await wallet.close();
  }
}

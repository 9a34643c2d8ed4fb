// Approvals of which the wallet never heard whether their broker took them, as where it was killed while it waited.
import { isRecord } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import type { HistoryEntry } from "./history.ts";
import { readItems } from "./pages.ts";
import { listRecords, putRecord } from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import type { StorageKey } from "./storage.ts";

/** The newest, here and there: whoever was interrupted comes back soon, and waits for this. */
const newestMax = 100;
const list = { path: `/w/orders?limit=${newestMax}`, pagesMax: 1 };

/** States of an order that only an approval leads to. */
const takenStates: ReadonlySet<unknown> = new Set([
  "INITIATING",
  "INITIATED",
  "CONFIRMING",
  "CONFIRMED",
]);
/** Reasons for which an order fails after it was approved. */
const takenReasons: ReadonlySet<unknown> = new Set([
  "FIELD_REVOKED",
  "INITIATE_TX_FAILED",
  "CONFIRM_TX_FAILED",
]);

/** An entry of the history with its key. */
interface KeptEntry {
  readonly key: StorageKey;
  readonly entry: HistoryEntry;
}

/**
 * Writes to the history which of these approvals a broker has taken. A broker that does not answer, or does not know
 * them, changes nothing.
 */
export async function learnTaken(ctx: WalletContext, broker: string): Promise<void> {
  const unheard = await listUnheard(ctx);
  if (unheard.length === 0) return;
  try {
    for await (const id of readItems(ctx, broker, { ...list, read: takenOf }))
      for (const { key, entry } of unheard.filter((each) => each.entry.id === id))
        await putRecord(ctx, key, { ...entry, outcome: "approved" });
  } catch (error) {
    if (!(error instanceof WalletRefusal)) throw error;
  }
}

/** What is asked for again may be approved again: of an order the last approval counts. */
async function listUnheard(ctx: WalletContext): Promise<readonly KeptEntry[]> {
  const given = (await listRecords(ctx, "history", newestMax))
    .map(({ key, value }) => ({ key, entry: value as HistoryEntry }))
    .filter(({ entry }) => entry.action === "request" && entry.outcome !== "declined");
  return given.filter(
    ({ entry: { id, at, outcome } }) =>
      outcome === "sent" && !given.some(({ entry }) => entry.id === id && entry.at > at),
  );
}

/** The id of an order that was approved; null for any other. */
function takenOf(item: unknown): string | null {
  const { referenceKey, status, failureReason } = isRecord(item) ? item : {};
  const isTaken = takenStates.has(status) || takenReasons.has(failureReason);
  return isTaken && typeof referenceKey === "string" ? referenceKey : null;
}

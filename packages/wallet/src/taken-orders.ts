// Approvals of which the wallet never heard whether their broker took them, as where it was killed while it waited.
import { isRecord } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import type { HistoryEntry } from "./history.ts";
import { readItems } from "./pages.ts";
import { listRecords, putRecord, type StoredRecord } from "./records.ts";
import { WalletRefusal } from "./refusal.ts";

/** The newest: whoever was interrupted comes back soon, and waits for this. */
const list = { path: "/w/orders?limit=100", pagesMax: 1 };

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

/**
 * Writes to the history which of these approvals a broker has taken. A broker that does not answer, or does not know
 * them, changes nothing.
 */
export async function learnTaken(ctx: WalletContext, broker: string): Promise<void> {
  const unheard = await listUnheard(ctx);
  if (unheard.size === 0) return;
  try {
    for await (const id of readItems(ctx, broker, { ...list, read: takenOf })) {
      const found = unheard.get(id);
      if (found === undefined) continue;
      const { key, value } = found;
      await putRecord(ctx, key, { ...(value as HistoryEntry), outcome: "approved" });
    }
  } catch (error) {
    if (!(error instanceof WalletRefusal)) throw error;
  }
}

/** By the id of their request; an order that is asked for again has one entry for each time, the last of which counts. */
async function listUnheard(ctx: WalletContext): Promise<ReadonlyMap<string, StoredRecord>> {
  const latest = new Map<string, StoredRecord>();
  for (const record of await listRecords(ctx, "history")) {
    const { action, id, outcome } = record.value as HistoryEntry;
    if (action === "request" && id !== undefined && outcome !== "declined") latest.set(id, record);
  }
  return new Map([...latest].filter(([, { value }]) => (value as HistoryEntry).outcome === "sent"));
}

/** The id of an order that was approved; null for any other. */
function takenOf(item: unknown): string | null {
  const { referenceKey, status, failureReason } = isRecord(item) ? item : {};
  const isTaken = takenStates.has(status) || takenReasons.has(failureReason);
  return isTaken && typeof referenceKey === "string" ? referenceKey : null;
}

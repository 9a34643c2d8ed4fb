import assert from "node:assert/strict";
import { test } from "node:test";
import { offerStatusOf } from "./offer.ts";

test("an offer is open through its last second, and its status before that stays", () => {
  for (const [changed, atEnd, later] of [
    [{}, "OPEN", "EXPIRED"],
    [{ cancelledAt: 1 }, "CANCELLED", "CANCELLED"],
    [{ claimedAt: 1 }, "CLAIMED", "CLAIMED"],
  ] as const) {
    const offer = { expiresAt: 1800, cancelledAt: null, claimedAt: null, ...changed };
    const statuses = [1800, 1801].map((now) => offerStatusOf(offer, now));
    assert.deepEqual(statuses, [atEnd, later]);
  }
});

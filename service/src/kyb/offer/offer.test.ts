import assert from "node:assert/strict";
import { test } from "node:test";
import { type Offer, offerStatusOf } from "./offer.ts";

const offer: Offer = {
  id: "",
  clientDomainId: "",
  organizationId: "",
  environment: "live",
  kind: "data_request",
  requester: "",
  createdAt: 0,
  expiresAt: 1800,
  cancelledAt: null,
  claimedAt: null,
  business: null,
  claimant: null,
  requestId: null,
  digest: null,
};

test("an offer is open to its last second, and what it became before stays", () => {
  for (const [changed, atEnd, later] of [
    [{}, "OPEN", "EXPIRED"],
    [{ cancelledAt: 1 }, "CANCELLED", "CANCELLED"],
    [{ claimedAt: 1 }, "CLAIMED", "CLAIMED"],
  ] as const) {
    const statuses = [1800, 1801].map((now) => offerStatusOf({ ...offer, ...changed }, now));
    assert.deepEqual(statuses, [atEnd, later]);
  }
});

// What the KYB endpoints answer, written from the service document and the decisions alone. Everything is of one
// business, one request of each kind, one offer.
import { commitmentOf, leafOf, type Address, type Hex32 } from "@svc/protocol";

import { KycRefusal, type FakeIssuer } from "./fake-issuer.ts";

const base = "/api/v1/kyb";
const hash: Hex32 = `0x${"33".repeat(32)}`;
const currency = "CHF";
export const offerId = "01JD000000000000000000000O";
export const chargeId = "01JD000000000000000000000C";
/** Follows the first page of every list. */
export const nextCursor = "01JD000000000000000000000N";

/** What all answers are about. */
export interface Told {
  business: Address;
  requestId: string;
  signatureRequestId: string;
  /** The body of an event. */
  bodyOf: (event: string, of: { seq: number; of: string }) => string;
  /** That of a move. */
  movedBody: string;
}

/** Teaches a fake issuer to answer every KYB call. */
export function answerKyb(issuer: FakeIssuer, told: Told): void {
  answerLookups(issuer, told);
  answerBilling(issuer, told);
  answerRequests(issuer, told);
  answerOffers(issuer, told);
  answerStreams(issuer, told);
}

function answerLookups({ kyc, now }: FakeIssuer, { business }: Told): void {
  const standing = {
    walletAddress: business,
    businessName: "Bergblick Handels AG",
    domain: "bergblick.example",
    status: "active",
    verified: true,
    registeredAt: now - 1000,
  };
  kyc.set(`GET ${base}/status/${business}`, () => standing);
  kyc.set(`GET ${base}/verify/${business}`, () => ({
    ...standing,
    memberCount: 3,
    governanceRules: [
      { category: "signature_requests", approvalMode: "MAJORITY" },
      { category: "data_requests", approvalMode: "UNANIMOUS" },
    ],
  }));
  kyc.set(`GET ${base}/members/${business}`, () => ({
    walletAddress: business,
    totalMembers: 2,
    members: [
      { name: "Alice", walletAddress: `0x${"a1".repeat(20)}`, votingRights: true, isCreator: true },
      { walletAddress: `0x${"b0".repeat(20)}`, votingRights: false, isCreator: false },
    ],
  }));
  kyc.set(`POST ${base}/valid`, () => ({
    valid: [{ name: "BUSINESS_LEGAL_NAME", subject: "" }],
    invalid: [
      { name: "BUSINESS_DIRECTOR_NAME", subject: "director-1", reason: "REVOKED" },
      { name: "BUSINESS_DIRECTOR_NAME", subject: "director-2", reason: "UNKNOWN" },
    ],
  }));
}

export const someLine = { field: "BUSINESS_LEGAL_NAME", tier: "A", cents: 100 };

function answerBilling({ kyc, now }: FakeIssuer, { business, requestId }: Told): void {
  const { field, ...price } = someLine;
  kyc.set(`GET ${base}/pricing`, () => ({
    currency,
    fields: [{ name: field, ...price, naturalPersonPii: false, subjectType: "BUSINESS" }],
  }));
  kyc.set(`GET ${base}/billing/account`, () => ({
    currency,
    totalChf: 500,
    spentChf: 12.5,
    packagesChf: 2.5,
    frozenChf: 7.5,
    availableChf: 480,
    billingEnabled: true,
  }));
  const charge = {
    chargeId,
    requestId,
    businessWalletAddress: business,
    chargedAt: now,
    currency,
    totalCents: 100,
    lines: [someLine],
  };
  kyc.set(`GET ${base}/billing/charges`, ({ query }) => pageAfter(query, charge));
  kyc.set(`POST ${base}/data-requests/quote`, () => ({
    currency,
    totalCents: 100,
    lines: [someLine],
  }));
}

/** A first page with one item, and a second page with none. */
function pageAfter(query: URLSearchParams, item: object): object {
  return query.get("cursor") === nextCursor ? { items: [] } : { items: [item], nextCursor };
}

function answerRequests({ kyc, now }: FakeIssuer, told: Told): void {
  const { business, requestId, signatureRequestId } = told;
  const begun = {
    businessWalletAddress: business,
    purpose: "as asked",
    createdAt: now,
    expiresAt: now + 86_400,
  };
  const asked = { naturalPersonPii: false, optional: false, subjectType: "BUSINESS" };
  const data = (status: string): object => ({
    requestId,
    ...begun,
    reference: "order 4711",
    status,
    fields: [{ name: "BUSINESS_LEGAL_NAME", hash, ...asked }],
    price: { quotedCents: 100, currency, lines: [someLine] },
  });
  const signature = (status: string): object => ({
    requestId: signatureRequestId,
    ...begun,
    messageKind: "TEXT",
    digest: hash,
    status,
  });
  for (const [path, id, show] of [
    ["data-requests", requestId, data],
    ["signature-requests", signatureRequestId, signature],
  ] as const) {
    const refused = () => show("refused");
    kyc.set(`GET ${base}/${path}`, ({ query }) =>
      pageAfter(query, { ...refused(), reason: "declined" }),
    );
    kyc.set(`GET ${base}/${path}/${id}`, refused);
    kyc.set(`POST ${base}/${path}/${id}/cancel`, () => show("cancelled"));
  }
  kyc.set(`GET ${base}/signature-requests/${signatureRequestId}/signature`, () => ({
    requestId: signatureRequestId,
    businessWalletAddress: business,
    signature: `0x01${hash.slice(2)}`,
    digest: hash,
    signedAt: now,
    transactionHash: hash,
    verification: {
      method: "eip1271",
      contract: business,
      chainId: 31_337,
      selector: "0x1626ba7e",
    },
  }));
  answerRelease({ kyc, now }, told);
}

/** A leaf of one field, alone in its tree. */
export function proofOf(business: Address, expiresAt: number): object {
  const commitment = commitmentOf({ data: "Muster AG", pepper: hash });
  const leaf = leafOf({ user: business, field: "BUSINESS_LEGAL_NAME", commitment, expiresAt });
  const contract = `0x${"4".repeat(40)}`;
  return {
    name: "BUSINESS_LEGAL_NAME",
    subject: "",
    commitment,
    expiresAt,
    leaf,
    root: leaf,
    proof: [],
    issuer: `0x${"1".repeat(40)}`,
    transactionHash: hash,
    chainId: 31_337,
    registry: contract,
  };
}

function answerRelease(
  { kyc, now }: Pick<FakeIssuer, "kyc" | "now">,
  { business, requestId }: Told,
): void {
  const path = `GET ${base}/data-requests/${requestId}`;
  const expiresAt = now + 30 * 86_400;
  kyc.set(`${path}/release`, () => ({
    requestId,
    attestation: "a.b.c",
    releasedAt: now,
    expiresAt,
  }));
  kyc.set(`${path}/proofs`, () => ({ requestId, proofs: [proofOf(business, expiresAt)] }));
}

function answerOffers({ kyc, now }: FakeIssuer, { business, requestId }: Told): void {
  const offer = (status: string): object => ({
    offerId,
    status,
    link: `svc:request?id=${offerId}`,
    universalLink: `https://wallet.example/l#svc:request?id=${offerId}`,
    qrcode: "iVBORw0KGgo=",
    expiresAt: now + 1800,
  });
  const open = () => offer("OPEN");
  kyc.set(`POST ${base}/data-requests/offers`, open);
  kyc.set(`POST ${base}/signature-requests/offers`, open);
  kyc.set(`GET ${base}/offers/${offerId}`, () => ({
    ...offer("CLAIMED"),
    businessWalletAddress: business,
    requestId,
  }));
  kyc.set(`POST ${base}/offers/${offerId}/cancel`, () => offer("CANCELLED"));
}

function answerStreams({ kyc, now, url }: FakeIssuer, told: Told): void {
  const { requestId, signatureRequestId, bodyOf, movedBody } = told;
  const endpoint = {
    url: `${url}/hooks`,
    secretVersion: 2,
    active: false,
    createdAt: now,
  };
  const path = `${base}/webhook-endpoint`;
  kyc.set(`GET ${path}`, () => endpoint);
  kyc.set(`POST ${path}/rotate-secret`, () => ({ ...endpoint, secret: "cd".repeat(32) }));
  kyc.set(`POST ${path}/reactivate`, () => ({ ...endpoint, active: true }));
  kyc.set(`POST ${path}/test`, () => ({ eventId: "01JE0000000000000000000000" }));
  const eventId = "01JE0000000000000000000001";
  kyc.set(`GET ${base}/events`, ({ query }) => {
    const { event, stream_id: streamId } = JSON.parse(movedBody) as Record<string, unknown>;
    const moved = { eventId, seq: 1, event, streamId, createdAt: now, attempts: 13 };
    return pageAfter(query, { ...moved, body: movedBody });
  });
  kyc.set(`GET ${base}/events/${eventId}/deliveries`, ({ query }) => {
    const attempt = { attempt: 1, at: now - 6, outcome: "failed" };
    return pageAfter(query, { eventId, seq: 1, event: "kyb.endpoint.test", ...attempt });
  });
  kyc.set(`POST ${base}/events/${eventId}/redeliver`, () => ({ count: 1 }));
  for (const [kind, id] of [
    ["data-requests", requestId],
    ["signature-requests", signatureRequestId],
  ] as const) {
    const event = `kyb.${kind.slice(0, -1).replace("-", "_")}.failed`;
    const on = { eventId: "01JE0000000000000000000000", seq: 2, event };
    const stream = `${base}/${kind}/${id}`;
    kyc.set(`GET ${stream}/events`, () => ({
      items: [
        {
          ...on,
          createdAt: now,
          attempts: 1,
          nextAttemptAt: now + 5,
          body: bodyOf(event, { seq: 2, of: id }),
        },
        { ...on, seq: 3, createdAt: now, attempts: 2, deliveredAt: now },
      ],
    }));
    kyc.set(`GET ${stream}/deliveries`, () => ({
      items: [
        { ...on, attempt: 1, at: now - 6, outcome: "failed" },
        { ...on, attempt: 2, at: now - 1, outcome: "refused", status: 503, durationMs: 12 },
      ],
    }));
    kyc.set(`POST ${stream}/redeliver`, ({ body }) => {
      if (body["eventId"] === "gone") throw new KycRefusal(410, "payload_expired");
      return { count: body["eventId"] === undefined ? 2 : 1 };
    });
  }
}

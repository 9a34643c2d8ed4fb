// The rows of data requests, signature requests and offers: what asks members of a business, in the service document and
// in section 6 of its decisions.
import type { Row } from "./document-rows.ts";

const data = "journeys/kyb-data-request.test.ts";
const offers = "journeys/kyb-offers.test.ts";
const signature = "journeys/kyb-signature.test.ts";
const signatures = "journeys/kyb-signature-requests.test.ts";
const refusedDocuments = "attacks/documents-never-signed.test.ts";
const records = "journeys/kyb-company-record.test.ts";
const attestation = "journeys/kyb-attestation.test.ts";
const sdk = "journeys/kyb-sdk.test.ts";
const silence = "journeys/kyb-silence.test.ts";
const pricing = "kyb/billing/pricing.test.ts";
const votes = "races/kyb-votes.test.ts";
const walletContract = "contracts/test/BusinessWallet.t.sol";
const api = "/api/v1/kyb";
const streamOf = (kind: string): string[] => [
  `GET ${api}/${kind}/<id>/deliveries`,
  `GET ${api}/${kind}/<id>/events`,
  `POST ${api}/${kind}/<id>/redeliver`,
];

const dataRows: readonly Row[] = [
  {
    name: "201 POST data-requests: asks a business, keeps the whole quote back",
    routes: [`POST ${api}/data-requests`, `POST ${api}/data-requests/quote`],
    shownBy: [
      [
        data,
        "two of three members approve: the merchant gets a signed attestation and pays for what was released",
      ],
      [data, "names may be given by their hash"],
      [data, "prices, quotes and charges for the same fields agree line by line"],
    ],
  },
  {
    name: "200 GET data-requests, one of them, and POST cancel",
    routes: [
      `GET ${api}/data-requests`,
      `GET ${api}/data-requests/<id>`,
      `POST ${api}/data-requests/<id>/cancel`,
    ],
    shownBy: [
      [data, "a cancelled request frees its money, is announced, and takes no vote"],
      ["merchant/src/kyb.test.ts", "lists are read page by page, by the cursor of the page before"],
    ],
  },
  {
    name: "200 GET deliveries, events after a sequence, POST redeliver",
    routes: [...streamOf("data-requests"), ...streamOf("signature-requests")],
    reasons: ["event_not_found"],
    shownBy: [
      [signatures, "deliveries and events after a sequence are listed, and events are sent again"],
      [sdk, "what was missed is listed after a sequence, with its attempts, and sent again"],
    ],
  },
  {
    name: "200 GET release and proofs: byte for byte as delivered; 404 `not_released`; 410 `payload_expired` after 30 days",
    routes: [`GET ${api}/data-requests/<id>/release`, `GET ${api}/data-requests/<id>/proofs`],
    reasons: ["not_released", "payload_expired"],
    shownBy: [
      [
        data,
        "the attestation holds what was decided, opens the leaves on chain, and verifies by the published keys",
      ],
      [data, "what was released is gone after 30 days, in the release, the proofs and the event"],
      [
        "merchant/src/company-proof.test.ts",
        "a proof of a director's name says, fact by fact, what it proves",
      ],
    ],
  },
  {
    name: "200 POST valid: whether released fields still hold; 200 GET kyb-jwks.json",
    routes: [`POST ${api}/valid`, "GET /.well-known/kyb-jwks.json"],
    shownBy: [
      [sdk, "what a business releases is delivered, verified, proved on chain, and holds"],
      [
        records,
        "every leaf is proved against the registry, and for another subject, business or value the proof fails",
      ],
      ["credentials/companies.test.ts", "a leaf is live, expired, revoked, or unknown"],
    ],
  },
  {
    name: "400 `field_not_priced`: no field of the catalogue is without a price",
    reasons: ["field_not_priced"],
    shownBy: [[pricing, "every field of the catalogue has a price, by tier 4.00, 2.50 or 1.00"]],
  },
  {
    name: "402 `insufficient_credit`, `no_credit_account`, with what is required and available",
    reasons: ["insufficient_credit", "no_credit_account"],
    shownBy: [
      [
        "races/kyb-money.test.ts",
        "50 creates for 50 businesses with funds for 10: exactly 10 succeed, and exactly 10 are charged",
      ],
      [data, "a request is refused in the documented order, each with its reason"],
      [offers, "money is kept back when the offer is claimed; the member learns no balance"],
    ],
  },
  {
    name: "409 `request_already_open` names the open one",
    reasons: ["request_already_open"],
    shownBy: [
      [data, "one request of a client domain is open to a business, and the conflict names it"],
      [
        "races/kyb-money.test.ts",
        "50 creates for one business: one succeeds, 49 are told which request is open",
      ],
    ],
  },
  {
    name: "409 `request_not_open`",
    reasons: ["request_not_open"],
    shownBy: [
      [data, "a cancelled request frees its money, is announced, and takes no vote"],
      [signature, "a cancelled request takes no vote, and cannot be cancelled again"],
    ],
  },
  {
    name: "422 `unknown_field`, `field_not_available`, `business_not_verified`",
    reasons: ["unknown_field", "field_not_available", "business_not_verified"],
    shownBy: [
      [data, "a request is refused in the documented order, each with its reason"],
      [
        signature,
        "a request fails when its business is suspended, loses its record, or moves, and says which",
      ],
      [offers, "a claim is refused where a request would be"],
    ],
  },
  {
    name: "the window of a data request is 24 hours, however many had voted",
    shownBy: [[data, "a request that nobody decides ends after 24 hours, however many had voted"]],
  },
  {
    name: "data request: pending_approval -> released, refused, cancelled, failed, each with its event",
    shownBy: [
      [data, "two of three members approve: the merchant gets a signed attestation"],
      [
        data,
        "a refusal is told 5 to 30 seconds after the vote that decides; until then nothing differs",
      ],
      [data, "a cancelled request frees its money, is announced, and takes no vote"],
      [
        votes,
        "a request whose business is suspended while the deciding vote comes is released and paid, or fails",
      ],
      [votes, "two approvals at the same instant on two processes release and charge once"],
    ],
  },
  {
    name: "the first approval fixes the optional fields; later ones are for exactly those",
    shownBy: [
      [data, "later approvals are for the fields that the first one fixed, and for nothing else"],
    ],
  },
  {
    name: "billing: only what was released is captured; sums to zero, never below it",
    shownBy: [
      [
        "races/kyb-money.test.ts",
        "whatever happens at the same time, the ledger is right at every moment, and nothing is held at the end",
      ],
      ["faults/kyb-data-crash-points.test.ts", "a data request survives kill -9 at every write"],
    ],
  },
  {
    name: "the attestation: RS256 of RSA-3072, its `typ`, claims and keys, 30 days",
    shownBy: [
      [attestation, "jose accepts an attestation with the published keys"],
      [
        attestation,
        "jose refuses another typ, another audience, another issuer, another key and another time",
      ],
      [
        "kyb/release/attestation-keys.test.ts",
        "processes that begin at once sign with one key, of RSA with 3072 bits, and publish it",
      ],
      [
        "merchant/src/kyb-attestation.test.ts",
        "the checks come in order: typ, alg, signature, claims, envelope, fields",
      ],
    ],
  },
];

const signatureRows: readonly Row[] = [
  {
    name: "201 POST signature-requests: TEXT and TYPED_DATA, signed by the contract for any ERC-1271 verifier",
    routes: [`POST ${api}/signature-requests`],
    shownBy: [
      [
        signature,
        "a business signs a text: two of three approve, it is recorded, and everybody can check it",
      ],
      [signature, "a business signs typed data, and no other text in the same type"],
      [
        signature,
        "a signature outlives its approvals, its roster and its signers, until the members take it back",
      ],
      [
        walletContract,
        "test_onlyWhatWasRecordedIsSigned",
        "test_aSignatureOutlivesItsApprovalsAndSigners",
      ],
    ],
  },
  {
    name: "200 GET signature-requests, one of them, its signature, and POST cancel; 404 `not_signed`",
    routes: [
      `GET ${api}/signature-requests`,
      `GET ${api}/signature-requests/<id>`,
      `GET ${api}/signature-requests/<id>/signature`,
      `POST ${api}/signature-requests/<id>/cancel`,
    ],
    reasons: ["not_signed"],
    shownBy: [
      [signatures, "the list pages from the newest on, and filters by status"],
      [signature, "a cancelled request takes no vote, and cannot be cancelled again"],
      [sdk, "a business signs, and a node of the chain says so"],
    ],
  },
  {
    name: "400 `idempotency_key_required`; 409 `idempotency_key_conflict`",
    reasons: ["idempotency_key_required", "idempotency_key_conflict"],
    shownBy: [
      [signatures, "a create names an Idempotency-Key, and repeated it asks once"],
      [signatures, "fifty creates at once under one key are one request"],
      [
        data,
        "a repeated create with its Idempotency-Key answers the same request and keeps the money back once",
      ],
    ],
  },
  {
    name: "`expiresInSeconds` 1, 299, 300, 86400, 86401: clamped to 5 minutes and 24 hours",
    shownBy: [
      [signatures, "how long members may vote is clamped to 5 minutes and 24 hours"],
      [signatures, "the shortest window ends after 300 seconds, and not before"],
    ],
  },
  {
    name: "422 `document_refused`: by the service, and again by the wallet",
    reasons: ["document_refused"],
    shownBy: [
      [refusedDocuments, "is refused by the service, and again by the wallet"],
      [refusedDocuments, "nobody signs in to a domain that is not verified"],
    ],
  },
  {
    name: "signature request: pending_approval -> signed, refused, expired, cancelled, failed, each with its event",
    shownBy: [
      [signature, "is delivered with the signature, after the transaction"],
      [
        signature,
        "a refusal is announced 5 to 30 seconds after the vote that decides it, and nothing shows before",
      ],
      [signature, "a request that nobody decides in its window expires, however many had voted"],
      [signature, "a cancelled request takes no vote, and cannot be cancelled again"],
      [
        signature,
        "a request fails when its business is suspended, loses its record, or moves, and says which",
      ],
    ],
  },
  {
    name: "the merchant learns neither voters nor tally",
    shownBy: [
      [silence, "nothing tells whether nobody, one or all but one had voted"],
      [
        silence,
        "a release is the same whichever members approved, in whatever order, and whoever refused",
      ],
      [data, "what the merchant can see names no voter and no tally, whatever the outcome"],
    ],
  },
  {
    name: "429: 5 open and 20 a day for an organization and a business; 403 `requester_blocked`",
    reasons: ["rate_limited", "requester_blocked"],
    shownBy: [
      [data, "an organization has at most 5 open requests and 20 a day to one business"],
      [
        signatures,
        "an organization has at most 5 open requests and 20 a day to one business, until a day is over",
      ],
      [data, "a business can stop an organization from asking, and take that back"],
    ],
  },
];

const offerRows: readonly Row[] = [
  {
    name: "201 POST offers of both kinds, GET and cancel: one link, 30 minutes, at most an hour, claimed once",
    routes: [
      `POST ${api}/data-requests/offers`,
      `POST ${api}/signature-requests/offers`,
      `GET ${api}/offers/<id>`,
      `POST ${api}/offers/<id>/cancel`,
    ],
    shownBy: [
      [offers, "offer has one link, however often it is asked for under its key"],
      [offers, "offer ends after 30 minutes, or after what was asked for, at most an hour"],
      [offers, "the time to vote on a ${kind} offer begins with its claim"],
      [offers, "offer is seen by its client domain alone"],
    ],
  },
  {
    name: "claimed by a voting member, who names the business; 403 `not_a_member`; anything else `unsupported`",
    routes: ["POST /w/f/<token>/open", "POST /w/f/<token>/claim", "POST /w/f/<token>"],
    reasons: ["not_a_member", "unsupported"],
    shownBy: [
      [offers, "offer is claimed by a voting member and becomes a request of its business"],
      [offers, "offer, for itself and for its own business"],
      [offers, "offer says who asks, and takes nothing but a claim"],
    ],
  },
  {
    name: "409 `offer_not_open`: claimed, cancelled or expired",
    reasons: ["offer_not_open"],
    shownBy: [
      [offers, "offer is claimed once; the same claim again gets the same request"],
      [offers, "a cancelled ${kind} offer is claimed by nobody"],
      [
        offers,
        "all members scan at one instant: one of them takes the offer, and their business is asked once",
      ],
    ],
  },
];

/** All of them. */
export const requestRows: readonly Row[] = [...dataRows, ...signatureRows, ...offerRows];

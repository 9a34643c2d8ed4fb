// Every row of the KYC tables of the service document, and of what its decisions add: a test by its name, filed by its
// status, that says what shows it.
import { test } from "node:test";
import { checkPromised, promisedBy, type Row, showRows } from "../document-rows.ts";

const orders = "test/journeys/kyc-orders.test.ts";
const checks = "service/src/credentials/checks.test.ts";
const settlement = "service/src/kyc/settlement.test.ts";
const rules = "service/src/kyc/order.test.ts";
const deliveries = "service/src/webhooks/deliveries.test.ts";
const attempts = "test/journeys/kyc-deliveries.test.ts";
const wrongAnswers = "test/journeys/kyc-wrong-answers.test.ts";
const answers = "test/journeys/kyc-answers.test.ts";
const onChain = "test/journeys/order-on-chain.test.ts";

const keyed = "401, 405, 413, 415: every route refuses in the envelope";

const rows: readonly Row[] = [
  // Endpoints and what they answer.
  {
    name: "200 GET verified: `verifiedItems` and `unVerifiedItems`, either omitted when empty; `Items were successfully checked.`",
    routes: ["GET /api/v1/blockchain/verified"],
    shownBy: [
      [
        checks,
        "200 verified: an answer has both lists, the literal message, and the names as they were asked",
        "200 verified: a list that is empty is omitted, and a repeated name counts once",
      ],
      [answers, "200 verified and valid: the answers over HTTP have the literal messages"],
    ],
  },
  {
    name: "200 POST qrcode: `qrcode`, `link`, `expiration`, `referenceKey`; `QRCode has been successfully generated`",
    routes: ["POST /api/v2/kyc/qrcode"],
    shownBy: [
      [orders, "200: a request gives a PNG, a link, its end and its key, and begins PENDING"],
      [
        answers,
        "200: a fixed package asks for its own fields, a dynamic one for those that are named",
      ],
    ],
  },
  {
    name: "200 POST qrcode repeated while PENDING: a fresh code for the same order, `alreadySent: true`",
    shownBy: [
      [
        orders,
        "200: the same request while it waits gives a fresh link for the same order, alreadySent",
        "200: an older link stays good until one of them is opened",
        "200: a link outlives every older one, given out in the same second too",
      ],
      [
        answers,
        "200: after a repeat with another callback, what the earlier one did not take is delivered there",
        "200: after the next attempt with another callback, what the earlier one did not take is delivered there",
      ],
      ["test/races/two-processes.test.ts", "fifty identical requests make one order"],
    ],
  },
  {
    name: "200 POST qrcode: `statusCallback` and `withoutQRCode` change nothing",
    shownBy: [
      [answers, "200: statusCallback and withoutQRCode change nothing, whatever they hold"],
    ],
  },
  {
    name: "200 GET status: the order's fields, each once it exists; `status has been sent successfully`",
    routes: ["GET /api/v2/kyc/status"],
    shownBy: [
      [orders, "200: a request gives a PNG, a link, its end and its key, and begins PENDING"],
      [
        answers,
        "an order shows its hashes once they exist, and a failureReason where it FAILED alone",
      ],
    ],
  },
  {
    name: "200 GET all-statuses: entries with the same fields; `all statuses has sent successfully`",
    routes: ["GET /api/v2/kyc/all-statuses"],
    shownBy: [
      [
        orders,
        "200: a request gives a PNG, a link, its end and its key, and begins PENDING",
        "200: the user approves, and the order goes through every status to CONFIRMED",
      ],
      [
        answers,
        "an order shows its hashes once they exist, and a failureReason where it FAILED alone",
      ],
    ],
  },
  {
    name: "200 POST valid: `valids` and `unValids`, either omitted when empty; `user was successfully checked.`",
    routes: ["POST /api/v1/blockchain/valid"],
    shownBy: [
      [
        checks,
        "200 valid: an answer has the fields that are still valid, the literal message, and no empty list",
        "200 valid: a pepper is taken with or without 0x, in any case",
        "200 valid: a field is EXPIRED from the second of its end on",
        "200 valid: a field is REVOKED as soon as its issuer revokes it",
        "200 valid: a field is REVOKED when its user has withdrawn it",
        "is UNKNOWN",
      ],
      [answers, "200 verified and valid: the answers over HTTP have the literal messages"],
    ],
  },
  {
    name: "200 GET proof: what leads from a delivered field to the registry",
    routes: ["GET /api/v1/blockchain/proof"],
    shownBy: [
      [
        checks,
        "200 proof: an answer has what leads from a delivered field to the registry, and nothing else",
      ],
      [
        "test/journeys/credential-on-chain.test.ts",
        "every field's proof is accepted by the library",
      ],
    ],
  },
  {
    name: "200 POST cancel: a PENDING order ends CANCELLED and its transfer is free again",
    routes: ["POST /api/v2/kyc/cancel"],
    shownBy: [[answers, "200: a waiting order is cancelled, and its transfer is free again"]],
  },
  {
    name: "200 GET orders: newest first, in pages, by status and user",
    routes: ["GET /api/v2/kyc/orders"],
    shownBy: [[orders, "200: orders are listed newest first, page by page, by status and user"]],
  },
  {
    name: "200 GET events and POST redeliver: after a sequence, and sent again",
    routes: ["GET /api/v2/kyc/events", "POST /api/v2/kyc/redeliver"],
    shownBy: [
      [answers, "200: events are read after a sequence, and sent again one by one or all"],
      [deliveries, "a resend restarts the schedule, while the number of attempts continues"],
    ],
  },
  {
    name: "200 GET deliveries: each attempt with its outcome",
    routes: ["GET /api/v2/kyc/deliveries"],
    shownBy: [[attempts, "200: attempts to deliver are listed with what the receiver answered"]],
  },
  {
    name: "200 GET receipt: it is verified by the merchant's own anchors and the chain alone",
    routes: ["GET /api/v2/kyc/receipt"],
    shownBy: [
      [onChain, "the receipt is verified with the merchant's own anchors and the chain alone"],
      [settlement, "a receipt verifies by itself, in both phases, and names its user's signature"],
    ],
  },
  // Errors.
  {
    name: "400 `Invalid Request: ...`: a required field is missing or malformed",
    reasons: ["invalid_request", "malformed_request"],
    shownBy: [
      [
        orders,
        "a member is malformed",
        "400: every member is checked before anything is looked up",
        "more than 40 fields are named, each counted once",
        "400: a domain that lists the hosts of its callbacks has no other",
      ],
      [
        checks,
        "400 verified: a call without items or user, with an unknown name or a bad or repeated user is refused",
        "400 valid: a malformed body, pepper, identity or field is refused, and the message names it",
      ],
      [answers, "400: every required member of a request is required"],
    ],
  },
  {
    name: "400 `expiration time is not in valid range`: 299 and 901 seconds ahead; 300 and 900 are taken",
    reasons: ["expiration_out_of_range"],
    shownBy: [
      [
        orders,
        "400: the expiration is taken from 300 to 900 seconds ahead, to the second",
        "the expiration is out of range",
      ],
    ],
  },
  {
    name: "400 `no fields provided`",
    reasons: ["no_fields"],
    shownBy: [[orders, "there are no fields"]],
  },
  {
    name: "400 `user fields (...) are invalid fields`",
    reasons: ["invalid_fields"],
    shownBy: [
      [orders, "a name is no KYC field"],
      [answers, "400: every name that is no KYC field is told, of both lists"],
      [
        checks,
        "400 verified, proof and valid: a name outside the catalogue has the reason invalid_fields",
      ],
    ],
  },
  {
    name: "400 `sourcekey does not support dynamic fields`",
    reasons: ["dynamic_fields_unsupported"],
    shownBy: [
      [orders, "the package has a fixed field set"],
      [
        answers,
        "200: a fixed package asks for its own fields, a dynamic one for those that are named",
      ],
    ],
  },
  {
    name: "401: every call takes the API key, without `Bearer`",
    reasons: ["apikey_missing", "apikey_invalid"],
    shownBy: [
      [answers, keyed],
      [
        orders,
        "401, 404, 405: keys, foreign orders, earlier paths and other methods are refused in the envelope",
      ],
    ],
  },
  {
    name: "402 `package is exhausted`",
    reasons: ["package_exhausted"],
    shownBy: [[answers, "200: a waiting order is cancelled, and its transfer is free again"]],
  },
  {
    name: "404 `source key not found`: unknown, or of another domain",
    reasons: ["source_key_not_found"],
    shownBy: [[orders, "the Source Key is unknown", "401, 404, 405: keys, foreign orders"]],
  },
  {
    name: "404 `order not found`: an unknown `referenceKey`, or another domain's",
    reasons: ["order_not_found"],
    shownBy: [
      [orders, "401, 404, 405: keys, foreign orders"],
      [
        answers,
        "404: an order that is not there is not found, on every route that takes one",
        "404: an order of another domain is not found, on every route that takes one, nor in a list",
      ],
    ],
  },
  {
    name: "404: a receipt before there is one, an event that never was",
    reasons: ["receipt_not_found", "event_not_found"],
    shownBy: [
      [
        answers,
        "404: a receipt before the first transaction is not found, nor is an event that never was",
      ],
    ],
  },
  {
    name: "404: the paths of the earlier generation; 405: POST on `verified`, with `Allow`",
    shownBy: [
      [
        orders,
        "401, 404, 405: keys, foreign orders, earlier paths and other methods are refused in the envelope",
      ],
      [
        checks,
        "405: POST on verified and GET on valid are refused in the envelope, with the method that is taken",
      ],
    ],
  },
  {
    name: "410: data that was purged is not sent again",
    reasons: ["payload_expired"],
    shownBy: [
      [
        "service/src/webhooks/retention.test.ts",
        "a delivered body goes 24 hours after the 2xx, with the answers; the event stays, a resend is refused",
      ],
      ["test/attacks/personal-data.test.ts", "forty values travel through an order"],
    ],
  },
  {
    name: "413 and 415: bodies that are too large, or no JSON",
    reasons: ["body_too_large", "unsupported_media_type"],
    shownBy: [
      [answers, keyed],
      [
        checks,
        "200 and 413 valid: images fit, up to 8 MiB and 400 infos are read, and unknown members are ignored",
      ],
      [
        orders,
        "413: a wallet's answer holds values of 8 MiB, under the longest signature, and no more",
      ],
    ],
  },
  {
    name: "422 `unverified fields`",
    reasons: ["unverified_fields"],
    shownBy: [
      [orders, "a required field is not verified"],
      [orders, "all fields are optional, and none of them is verified"],
    ],
  },
  {
    name: "422 `there is already an ongoing request`: INITIATING, INITIATED, CONFIRMING",
    reasons: ["order_ongoing"],
    shownBy: [
      [
        answers,
        "422: an order that is INITIATING or CONFIRMING is ongoing, and is neither asked for again nor cancelled",
      ],
      [rules, "an order is ongoing from the approval to its end"],
    ],
  },
  {
    name: "422 `order can not be cancelled`: it is not PENDING",
    reasons: ["order_not_cancellable"],
    shownBy: [
      [answers, "200: a waiting order is cancelled, and its transfer is free again"],
      [
        answers,
        "422: an order that is INITIATING or CONFIRMING is ongoing, and is neither asked for again nor cancelled",
      ],
    ],
  },
  {
    name: "429: a key has a rate of reads and one of creations",
    reasons: ["rate_limited"],
    shownBy: [
      [answers, "429: a key reads and creates so often in a second, and is told when to come back"],
    ],
  },
  {
    name: "the checks of a request come in their order",
    shownBy: [[orders, "of two faults at a time the one that is checked first is answered"]],
  },
  // States and transitions.
  {
    name: "every transition of an order, and every refused one",
    shownBy: [[rules, "an order makes every transition of the table and no other"]],
  },
  {
    name: "PENDING -> PENDING: the wallet opens the request, a preview changes nothing",
    shownBy: [
      [orders, "an order ends at its expiration, and a link preview changes nothing"],
      [answers, "an order that was opened is still PENDING, and nothing is announced"],
    ],
  },
  {
    name: "PENDING -> INITIATING: a valid Share of the order's user; nothing else does it",
    shownBy: [
      [
        orders,
        "200: the user approves, and the order goes through every status to CONFIRMED",
        "a hundred submissions and refusals that the user did not sign leave an order PENDING",
      ],
    ],
  },
  {
    name: "PENDING -> FAILED: USER_DECLINED, EXPIRED, CANCELLED, INVALID_CONFIRM_DATA",
    shownBy: [
      [
        orders,
        "200: after its end the same request is the next attempt, and the history runs on",
        "an order ends at its expiration, and a link preview changes nothing",
      ],
      [wrongAnswers, "the fourth validly signed answer ends the attempt"],
      [answers, "200: a waiting order is cancelled, and its transfer is free again"],
    ],
  },
  {
    name: "INITIATING -> INITIATED -> CONFIRMING -> CONFIRMED, told step by step",
    shownBy: [
      [
        settlement,
        "an approved order is settled on chain, and its merchant gets an event for every step",
      ],
      [onChain, "an approved order is confirmed by the chain, with both hashes in its history"],
    ],
  },
  {
    name: "INITIATED -> FAILED FIELD_REVOKED",
    shownBy: [
      [
        settlement,
        "an order whose leaf was revoked before the hand-over fails, and nothing is handed over",
      ],
    ],
  },
  {
    name: "INITIATING -> FAILED INITIATE_TX_FAILED: reverted for good, or not INITIATED after 72 hours",
    shownBy: [
      [
        settlement,
        "a reverted initiate fails the batch and gives its transfers and data back",
        "an order that is not initiated 72 hours after its approval fails, whatever comes later",
      ],
    ],
  },
  {
    name: "CONFIRMING -> FAILED CONFIRM_TX_FAILED",
    shownBy: [[settlement, "a reverted confirm fails the batch, after its data was handed over"]],
  },
  {
    name: "CONFIRMED, FAILED -> PENDING: the next attempt, history and sequence run on",
    shownBy: [
      [orders, "200: after its end the same request is the next attempt, and the history runs on"],
      [
        settlement,
        "the receipt of an attempt outlives it, and the next attempt is settled for itself",
      ],
    ],
  },
  // Events and limits.
  {
    name: "`status.updated` for every status, `data.transferred` after CONFIRMING, `data.invalidated` later",
    shownBy: [
      [
        settlement,
        "an approved order is settled on chain, and its merchant gets an event for every step",
      ],
      [onChain, "the merchant is told when the delivered field no longer holds"],
      [
        "packages/merchant/src/webhook.test.ts",
        "a genuine data.transferred brings decoded triples",
      ],
    ],
  },
  {
    name: "`Svc-Signature`: HMAC-SHA256 over time, dot and raw body; 5 minutes either way",
    shownBy: [
      ["test/journeys/webhook-signature.test.ts", "the signatures are verified by the library"],
      [
        "packages/merchant/src/webhook.test.ts",
        "the time of a delivery is good for 300 seconds either way, and not for 301",
      ],
      [
        "packages/protocol/src/webhook.test.ts",
        "the signature is the HMAC-SHA256 of time, dot and body",
      ],
    ],
  },
  {
    name: "`exp` of a data transfer: default 10, 5 and 60 count, 4 and 61 are refused",
    shownBy: [
      [
        "packages/wallet/src/actions/hand-over.test.ts",
        "a data transfer ends after 5 to 60 minutes, 10 where its link names none, and no other exp is taken",
      ],
    ],
  },
];

test("every route and refusal of the reference of KYC has a row", () => {
  checkPromised(
    rows,
    promisedBy("Verified fields", () => true),
  );
});

showRows(rows);

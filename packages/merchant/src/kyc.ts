import { parseReceipt, type Address, type FieldName, type Info, type Receipt } from "@svc/protocol";

import { invalid, openAnswer, readList, readPage, type Page } from "./api-answer.ts";
import { callKyc, checkOptions, type ApiOptions, type Query } from "./api-call.ts";
import { type DeliveryAttempt, readAttempt } from "./kyb-records.ts";
import { readLink, readUniversalLink } from "./links.ts";
import { openMembers, type Members } from "./members.ts";
import { readEvent, type OrderEvent, type UnknownEvent } from "./order-event.ts";
import { readOrderStatus, type OrderStatus } from "./order-status.ts";
import { readFieldProof, type FieldProof } from "./field-proof.ts";

export type KycOptions = ApiOptions;

/** Names of the catalogue, as you asked for them. */
export interface Verification {
  verified: string[];
  unverified: string[];
}

/** What a user is asked to share (service document, POST /api/v2/kyc/qrcode). */
export interface DataRequest {
  /** The identity from the login. */
  user: string;
  sourceKey: string;
  /** Your https address for this order's webhooks. */
  callback: string;
  /** Unix seconds, 5 to 15 minutes ahead. */
  expiration: number;
  /** Only for packages without a fixed set of fields. */
  fields?: readonly string[];
  /** Names of fields that the user may leave out. */
  optionalFields?: readonly string[];
  /** Your own number for it, at most 280 characters; every event repeats it. */
  reference?: string;
  /** Shown to the user, 1 to 280 characters. */
  purpose?: string;
  /** Where the phone's browser goes after the approval; on the host of your client domain. */
  returnUrl?: string;
}

/** How the user gets to the request. */
export interface RequestedData {
  /** Names this order from now on; the same request always has the same key. 64 hex digits. */
  referenceKey: string;
  /** Base64 of a PNG: show it as `data:image/png;base64,..`. */
  qrcode: string;
  /** `svc:request/..`: the target of a button on the phone. */
  link: string;
  /** The same as an https address, if the service knows the address of the web wallet. */
  universalLink?: string;
  /** Unix seconds. */
  expiration: number;
  /** The same request was already waiting; this is a new code for it. */
  alreadySent: boolean;
}

/** Whether stored values still hold. */
export interface Validity {
  valid: string[];
  invalid: string[];
  /** For each invalid field: EXPIRED, REVOKED, or UNKNOWN if no such triple was issued. */
  reasons: Readonly<Record<string, string>>;
}

/** An order in the list of orders. */
export interface ListedOrder extends OrderStatus {
  referenceKey: string;
  reference?: string;
  attempt: number;
  user: Address;
  fields: string[];
  optionalFields: string[];
  /** Unix seconds. */
  expiration: number;
  /** When a wallet first opened this attempt, Unix seconds. */
  scannedAt?: number;
}

/** An event of an order, and the state of its delivery. */
export interface EventOnItsWay {
  eventId: string;
  event: string;
  sequence: number;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds: your first 2xx. */
  deliveredAt?: number;
  attempts: number;
  nextAttemptAt?: number;
  /** For `applyEvent`; absent once its data has been purged. */
  content?: OrderEvent | UnknownEvent;
}

/**
 * The KYC endpoints, one method each. All may throw apikey_refused, rate_limited, call_refused, issuer_unreachable and
 * response_invalid.
 */
export interface Kyc {
  /** Which of the fields a user has verified: ask before you request them. GET /api/v1/blockchain/verified */
  verified: (asked: { user: string; items: readonly string[] }) => Promise<Verification>;
  /**
   * Makes an order, or a new code for the same order. POST /api/v2/kyc/qrcode
   *
   * @throws {MerchantError} call_refused; by `status`: 400 the request, 402 the package is exhausted, 404 the Source
   * Key, 422 unverified fields, or an order that is under way
   */
  requestData: (request: DataRequest) => Promise<RequestedData>;
  /** GET /api/v2/kyc/status. For an unknown order, as in all methods that follow: call_refused with status 404. */
  status: (referenceKey: string) => Promise<OrderStatus>;
  /**
   * Every status that the order has reached, oldest first; if there are more than 1000, the newest of them. GET
   * /api/v2/kyc/all-statuses
   */
  allStatuses: (referenceKey: string) => Promise<OrderStatus[]>;
  /** Ends an order that still waits for its user; for any other order: call_refused, 422. POST /api/v2/kyc/cancel */
  cancel: (referenceKey: string) => Promise<OrderStatus>;
  /**
   * What proves, without the service, that the user consented. Nothing in it is verified: see `verifyReceipt`. Before
   * the order is anchored on chain: call_refused, 404. GET /api/v2/kyc/receipt
   *
   * @param options.attempt default: the newest attempt that is anchored
   */
  receipt: (referenceKey: string, options?: { attempt?: number }) => Promise<Receipt>;
  /** GET /api/v2/kyc/orders. @param filter `limit` at most 100 */
  orders: (filter?: {
    status?: string;
    user?: string;
    limit?: number;
    cursor?: string;
  }) => Promise<Page<ListedOrder>>;
  /**
   * The events of an order, oldest first: find what you missed, page by page until one is empty. GET /api/v2/kyc/events
   *
   * @param options.after a `sequence`
   */
  events: (
    referenceKey: string,
    options?: { after?: number; limit?: number },
  ) => Promise<EventOnItsWay[]>;
  /**
   * How each attempt to deliver them went, in order. A page may end between two attempts at one event, so continue
   * after the `sequence` and the `attempt` of its last item, until a page is empty. GET /api/v2/kyc/deliveries
   *
   * @param options.after a `sequence`
   * @param options.afterAttempt an `attempt` at that event; without it none of that event is listed
   */
  deliveries: (
    referenceKey: string,
    options?: { after?: number; afterAttempt?: number; limit?: number },
  ) => Promise<OrderDeliveryAttempt[]>;
  /**
   * Sends an event, or all events of an order, once more; returns how many. If the data has been purged: call_refused,
   * 410. POST /api/v2/kyc/redeliver
   */
  redeliver: (referenceKey: string, eventId?: string) => Promise<number>;
  /** Whether stored triples still hold: ask before you rely on them. POST /api/v1/blockchain/valid */
  valid: (stored: { user: string; infos: readonly Info[] }) => Promise<Validity>;
  /**
   * Proofs of fields that were delivered to you, newest first. Nothing in them is verified: see `verifyProof`. GET
   * /api/v1/blockchain/proof
   */
  proof: (asked: { user: string; items: readonly FieldName[] }) => Promise<FieldProof[]>;
}

/** One attempt to deliver an event of an order. */
export interface OrderDeliveryAttempt extends Omit<DeliveryAttempt, "seq"> {
  sequence: number;
}

/**
 * Opens the KYC endpoints with an API key. Nothing is sent before the first call. Only for servers.
 *
 * @throws {MerchantError} configuration_invalid; its `reason` names the option
 */
export function openKyc(options: KycOptions): Kyc {
  checkOptions(options);
  const get = async (path: string, query: Query): Promise<Members> =>
    openAnswer(await callKyc(options, { path, query, bytesMax }));
  const post = async (path: string, body: object): Promise<Members> =>
    openAnswer(await callKyc(options, { path, body }));
  return {
    verified: async ({ user, items }) => {
      const data = await get("/api/v1/blockchain/verified", { user, items });
      return {
        verified: textsOf(data, "verifiedItems"),
        unverified: textsOf(data, "unVerifiedItems"),
      };
    },
    requestData: async (request) =>
      readRequestedData(await post("/api/v2/kyc/qrcode", { ...request })),
    status: async (referenceKey) =>
      readOrderStatus(await get("/api/v2/kyc/status", { referenceKey })),
    allStatuses: async (referenceKey) => {
      const data = await get("/api/v2/kyc/all-statuses", { referenceKey });
      return readList(data, "allStatuses", readOrderStatus);
    },
    cancel: async (referenceKey) =>
      readOrderStatus(await post("/api/v2/kyc/cancel", { referenceKey })),
    receipt: async (referenceKey, { attempt } = {}) =>
      readReceipt(await get("/api/v2/kyc/receipt", { referenceKey, attempt })),
    orders: async (filter = {}) =>
      readPage(await get("/api/v2/kyc/orders", filter), readListedOrder),
    events: async (referenceKey, { after, limit } = {}) => {
      const data = await get("/api/v2/kyc/events", { referenceKey, after, limit });
      return readList(data, "items", readEventOnItsWay);
    },
    deliveries: async (referenceKey, { after, afterAttempt, limit } = {}) => {
      const query = { referenceKey, after, afterAttempt, limit };
      return readList(await get("/api/v2/kyc/deliveries", query), "items", (item) => ({
        ...readAttempt(item),
        sequence: item.count("sequence"),
      }));
    },
    redeliver: async (referenceKey, eventId) =>
      (await post("/api/v2/kyc/redeliver", { referenceKey, eventId })).count("count"),
    valid: async ({ user, infos }) => {
      const triples = infos.map(({ field, data, pepper }) => ({
        field,
        data,
        // Hex without `0x` (service document, KYC info triple).
        pepper: pepper.replace(/^0x/, ""),
      }));
      return readValidity(await post("/api/v1/blockchain/valid", { user, infos: triples }));
    },
    proof: async ({ user, items }) => {
      const data = await get("/api/v1/blockchain/proof", { user, items });
      return data.has("proofs") ? readList(data, "proofs", readFieldProof) : [];
    },
  };
}

/** Bodies of events hold what was released, including images: up to 8 MiB per event. */
const bytesMax = 64 * 1024 * 1024;

/** An empty list is omitted (service document, Response envelopes). */
function textsOf(data: Members, name: string): string[] {
  return data.has(name) ? data.texts(name) : [];
}

function readRequestedData(data: Members): RequestedData {
  return {
    referenceKey: data.text("referenceKey"),
    qrcode: data.text("qrcode"),
    link: readLink(data),
    ...(data.has("universalLink") && { universalLink: readUniversalLink(data) }),
    expiration: data.count("expiration"),
    alreadySent: data.has("alreadySent") && data.flag("alreadySent"),
  };
}

function readReceipt(data: Members): Receipt {
  const receipt = parseReceipt(data.all);
  if ("fault" in receipt) throw invalid(receipt.fault.member ?? "receipt");
  return receipt;
}

function readListedOrder(item: Members): ListedOrder {
  return {
    referenceKey: item.text("referenceKey"),
    ...(item.has("reference") && { reference: item.anyText("reference") }),
    attempt: item.count("attempt"),
    user: item.address("user"),
    fields: item.texts("fields"),
    optionalFields: textsOf(item, "optionalFields"),
    expiration: item.count("expiration"),
    ...(item.has("scannedAt") && { scannedAt: item.count("scannedAt") }),
    ...readOrderStatus(item),
  };
}

function readEventOnItsWay(item: Members): EventOnItsWay {
  return {
    eventId: item.text("eventId"),
    event: item.text("event"),
    sequence: item.count("sequence"),
    createdAt: item.count("createdAt"),
    ...(item.has("deliveredAt") && { deliveredAt: item.count("deliveredAt") }),
    attempts: item.count("attempts"),
    ...(item.has("nextAttemptAt") && { nextAttemptAt: item.count("nextAttemptAt") }),
    ...(item.has("body") && { content: readEvent(item.text("body"), invalid) }),
  };
}

function readValidity(data: Members): Validity {
  // The names come from outside and errors are logged, so the error names `reasons` as a whole.
  const reasons = openMembers(data.has("reasons") ? data.record("reasons") : {}, () =>
    invalid("reasons"),
  );
  return {
    valid: textsOf(data, "valids"),
    invalid: textsOf(data, "unValids"),
    reasons: Object.fromEntries(
      Object.keys(reasons.all).map((field) => [field, reasons.text(field)]),
    ),
  };
}

import { invalid, openAnswer, readList, readPage, type Page } from "./api-answer.ts";
import { callKyb, checkOptions, type ApiOptions, type Query } from "./api-call.ts";
import { readCompanyProof, type CompanyProof } from "./company-proof.ts";
import type { ReleasedField } from "./kyb-attestation.ts";
import { readKybEvent, type AnyKybEvent } from "./kyb-event.ts";
import {
  readBilling,
  readBusinessMembers,
  readBusinessRules,
  readBusinessStatus,
  readCharge,
  readCompanyValidity,
  readDataRequest,
  readDeliveryAttempt,
  readEndpoint,
  readEndpointWithSecret,
  readOffer,
  readPricing,
  readQuote,
  readRelease,
  readSignature,
  readSignatureRequest,
  type BillingAccount,
  type BusinessMembers,
  type BusinessRules,
  type BusinessSignature,
  type BusinessStatus,
  type Charge,
  type CompanyValidity,
  type DataRequestRecord,
  type DeliveryAttempt,
  type EndpointWithSecret,
  type Offer,
  type Pricing,
  type Quote,
  type Release,
  type SignatureRequestRecord,
  type WebhookEndpoint,
} from "./kyb-records.ts";
import type { Members } from "./members.ts";
import { misconfigured } from "./merchant-error.ts";

/** What a business is asked for. */
export interface AskedFields {
  /** Names of the business catalogue; with `optionalFields` at most 40. */
  fields: readonly string[];
  /** Names of fields that the members may withhold. */
  optionalFields?: readonly string[];
  /** Why, as the members are shown it: 8 to 280 characters. */
  purpose: string;
  /** Your own number for it, at most 280 characters. */
  reference?: string;
}

/** What a business is asked to sign: a text (EIP-191) or an EIP-712 document. */
export type AskedDocument = (
  | { messageKind: "TEXT"; message: string }
  | { messageKind: "TYPED_DATA"; typedData: object }
) & {
  /** Why, as the members are shown it: 8 to 280 characters. */
  purpose: string;
  /** How long the members may vote; clamped to 300 to 86,400. */
  expiresInSeconds?: number;
};

/**
 * Makes repeating a call harmless: a text of your own for what should happen only once, such as your order number. 1 to
 * 255 visible ASCII characters; any other key is configuration_invalid.
 */
export interface Once {
  idempotencyKey: string;
}

/** Which requests a list holds. */
export interface RequestFilter {
  status?: string;
  /** At most 100. */
  limit?: number;
  cursor?: string;
}

/** The kind of request that an event or delivery belongs to. */
export type RequestKind = "data-requests" | "signature-requests";

/** An event of a request, and the state of its delivery. */
export interface KybEventOnItsWay {
  eventId: string;
  event: string;
  seq: number;
  createdAt: number;
  deliveredAt?: number;
  attempts: number;
  nextAttemptAt?: number;
  /** Absent once its data has been purged. */
  content?: AnyKybEvent;
}

/** Any event for your client domain, whether or not it belongs to a request. */
export interface PlacedKybEvent extends KybEventOnItsWay {
  /** The id of the request; for an event that belongs to no request, the id of the event's own stream. */
  streamId: string;
}

/** Which events a list holds. */
export interface EventFilter {
  /** Its `event`, such as `kyb.business.wallet_address_changed`. */
  type?: string;
  /**
   * An undelivered event is on its way, held in a quarantine, or given up; one that was given up has no
   * `nextAttemptAt`.
   */
  status?: "delivered" | "undelivered";
  /** At most 100. */
  limit?: number;
  cursor?: string;
}

/**
 * The KYB endpoints, one method each. All may throw apikey_refused, rate_limited, call_refused, issuer_unreachable and
 * response_invalid; the reasons of a call_refused are those of the service's table of errors.
 */
export interface Kyb {
  /** What everybody may know about a business, by the address of its wallet. */
  status: (wallet: string) => Promise<BusinessStatus>;
  /** The same, and how its members decide. */
  rules: (wallet: string) => Promise<BusinessRules>;
  /** Its roster, with names once the business has dealt with you. */
  members: (wallet: string) => Promise<BusinessMembers>;
  /** What each field costs. */
  pricing: () => Promise<Pricing>;
  /** How much money your organization has paid in, has spent, and has on hold. */
  billing: () => Promise<BillingAccount>;
  /** What releases cost, newest first, of all client domains. @param page.limit at most 100 */
  charges: (page?: { limit?: number; cursor?: string }) => Promise<Page<Charge>>;
  /**
   * What a request would cost; reserves nothing.
   *
   * @param asked.business if given, its own fields decide what counts as personal
   */
  quote: (
    asked: Pick<AskedFields, "fields" | "optionalFields"> & { business?: string },
  ) => Promise<Quote>;
  /**
   * Asks the members for fields, and holds the most that they may cost. You can have at most one such request open to a
   * business.
   */
  requestData: (
    asked: AskedFields & { business: string },
    once?: Once,
  ) => Promise<DataRequestRecord>;
  /** The state of a request. */
  dataRequest: (requestId: string) => Promise<DataRequestRecord>;
  /** The requests of your client domain, newest first. */
  dataRequests: (filter?: RequestFilter) => Promise<Page<DataRequestRecord>>;
  /** Cancels a request that still waits for the members; the money held for it is released. */
  cancelDataRequest: (requestId: string) => Promise<DataRequestRecord>;
  /** The attestation again, until it is purged. */
  release: (requestId: string) => Promise<Release>;
  /**
   * Proofs of the released fields whose root is already on chain; ask again later for the others. Nothing in them is
   * verified: see `verifyCompanyProof`.
   */
  proofs: (requestId: string) => Promise<CompanyProof[]>;
  /** Whether released fields still hold: ask before you rely on them. Free; no value is sent. At most 800 fields. */
  valid: (stored: {
    business: string;
    fields: readonly Pick<ReleasedField, "name" | "subject" | "hash">[];
  }) => Promise<CompanyValidity>;
  /** Asks the members to sign; the same key with another document is refused. */
  requestSignature: (
    asked: AskedDocument & { business: string },
    once: Once,
  ) => Promise<SignatureRequestRecord>;
  signatureRequest: (requestId: string) => Promise<SignatureRequestRecord>;
  /** The signature requests of your client domain, newest first. */
  signatureRequests: (filter?: RequestFilter) => Promise<Page<SignatureRequestRecord>>;
  cancelSignatureRequest: (requestId: string) => Promise<SignatureRequestRecord>;
  /** The signature of a request that is `signed`. Nothing in it is verified: see `verifyBusinessSignature`. */
  signature: (requestId: string) => Promise<BusinessSignature>;
  /** Makes a QR code by which any business can take this request, once. */
  offerData: (
    asked: AskedFields & { offerExpiresInSeconds?: number },
    once: Once,
  ) => Promise<Offer>;
  /** The same for a signature. */
  offerSignature: (
    asked: AskedDocument & { offerExpiresInSeconds?: number },
    once: Once,
  ) => Promise<Offer>;
  offer: (offerId: string) => Promise<Offer>;
  cancelOffer: (offerId: string) => Promise<Offer>;
  /** Registers or replaces the endpoint of your client domain; only this answer holds its new secret. */
  registerEndpoint: (url: string) => Promise<EndpointWithSecret>;
  endpoint: () => Promise<WebhookEndpoint>;
  /**
   * Makes a new secret and returns it. With an idempotency key, the same call again returns the same secret; without
   * one it makes another, and at most two are live.
   *
   * @param options.immediate ends the old secret at once, not after 24 hours
   */
  rotateSecret: (options?: { immediate?: boolean }, once?: Once) => Promise<EndpointWithSecret>;
  /** Ends a quarantine: the held events are sent, the oldest first. */
  reactivate: () => Promise<WebhookEndpoint>;
  /** Sends `kyb.endpoint.test`, signed like every event; returns its id. */
  testEndpoint: () => Promise<string>;
  /** The events of a request by their `seq`: find what you missed, until a page is empty. @param options.after a `seq` */
  events: (
    kind: RequestKind,
    requestId: string,
    options?: { after?: number; limit?: number },
  ) => Promise<KybEventOnItsWay[]>;
  /**
   * How each attempt to deliver them went, in order. A page may end between two attempts at one event, so continue
   * after the `seq` and the `attempt` of its last item, until a page is empty.
   *
   * @param options.after a `seq`
   * @param options.afterAttempt an `attempt` at that event; without it none of that event is listed
   */
  deliveries: (
    kind: RequestKind,
    requestId: string,
    options?: { after?: number; afterAttempt?: number; limit?: number },
  ) => Promise<DeliveryAttempt[]>;
  /** Sends an event, or all events of a request, once more; returns how many. */
  redeliver: (kind: RequestKind, requestId: string, eventId?: string) => Promise<number>;
  /**
   * All events of your client domain, newest first, including those that belong to no request. A page may be shorter
   * than its limit.
   */
  allEvents: (filter?: EventFilter) => Promise<Page<PlacedKybEvent>>;
  /**
   * How each attempt to deliver one of them went, in order; works for a test event too.
   */
  eventDeliveries: (
    eventId: string,
    page?: { limit?: number; cursor?: string },
  ) => Promise<Page<DeliveryAttempt>>;
  /** Sends one of them once more; returns how many were sent, always 1. */
  redeliverEvent: (eventId: string) => Promise<number>;
}

const base = "/api/v1/kyb";

/** Enough for a page of events with the attestations of large records. */
const bytesMax = 64 * 1024 * 1024;

/** Sends one call and returns the members of its answer. */
interface Wire {
  get: (path: string, query?: Query) => Promise<Members>;
  post: (path: string, body?: object, once?: Once) => Promise<Members>;
  put: (path: string, body: object) => Promise<Members>;
}

/**
 * Opens the KYB endpoints with an API key, the same as for KYC. Nothing is sent before the first call. Only for
 * servers.
 *
 * @throws {MerchantError} configuration_invalid; its `reason` names the option
 */
export function openKyb(options: ApiOptions): Kyb {
  checkOptions(options);
  const wire: Wire = {
    get: async (path, query = {}) =>
      openAnswer(await callKyb(options, { path: base + path, query, bytesMax })),
    post: async (path, body = {}, once) =>
      openAnswer(await callKyb(options, { path: base + path, body, ...once })),
    put: async (path, body) =>
      openAnswer(await callKyb(options, { path: base + path, body, method: "PUT" })),
  };
  return {
    ...openLookups(wire),
    ...openRequests(wire),
    ...openOffers(wire),
    ...openWebhooks(wire),
  };
}

type Lookups = Pick<
  Kyb,
  "status" | "rules" | "members" | "pricing" | "billing" | "charges" | "quote"
>;

function openLookups({ get, post }: Wire): Lookups {
  return {
    status: async (wallet) => readBusinessStatus(await get(`/status/${segment(wallet)}`)),
    rules: async (wallet) => readBusinessRules(await get(`/verify/${segment(wallet)}`)),
    members: async (wallet) => readBusinessMembers(await get(`/members/${segment(wallet)}`)),
    pricing: async () => readPricing(await get("/pricing")),
    billing: async () => readBilling(await get("/billing/account")),
    charges: async (page = {}) => readPage(await get("/billing/charges", { ...page }), readCharge),
    quote: async ({ business, fields, optionalFields = [] }) =>
      readQuote(
        await post("/data-requests/quote", {
          fields,
          optionalFields,
          ...(business !== undefined && { businessWalletAddress: business }),
        }),
      ),
  };
}

type Requests = Pick<
  Kyb,
  | "requestData"
  | "dataRequest"
  | "dataRequests"
  | "cancelDataRequest"
  | "release"
  | "proofs"
  | "valid"
  | "requestSignature"
  | "signatureRequest"
  | "signatureRequests"
  | "cancelSignatureRequest"
  | "signature"
>;

function openRequests({ get, post }: Wire): Requests {
  const data = "/data-requests";
  const signatures = "/signature-requests";
  return {
    requestData: async ({ business, ...asked }, once) =>
      readDataRequest(await post(data, { businessWalletAddress: business, ...asked }, once)),
    dataRequest: async (id) => readDataRequest(await get(`${data}/${segment(id)}`)),
    dataRequests: async (filter = {}) => readPage(await get(data, { ...filter }), readDataRequest),
    cancelDataRequest: async (id) => readDataRequest(await post(`${data}/${segment(id)}/cancel`)),
    release: async (id) => readRelease(await get(`${data}/${segment(id)}/release`)),
    proofs: async (id) =>
      readList(await get(`${data}/${segment(id)}/proofs`), "proofs", readCompanyProof),
    valid: async ({ business, fields }) =>
      readCompanyValidity(
        await post("/valid", {
          businessWalletAddress: business,
          // Values and peppers are not sent.
          fields: fields.map(({ name, subject, hash }) => ({ name, subject, hash })),
        }),
      ),
    requestSignature: async ({ business, ...asked }, once) =>
      readSignatureRequest(
        await post(signatures, { businessWalletAddress: business, ...asked }, once),
      ),
    signatureRequest: async (id) => readSignatureRequest(await get(`${signatures}/${segment(id)}`)),
    signatureRequests: async (filter = {}) =>
      readPage(await get(signatures, { ...filter }), readSignatureRequest),
    cancelSignatureRequest: async (id) =>
      readSignatureRequest(await post(`${signatures}/${segment(id)}/cancel`)),
    signature: async (id) => readSignature(await get(`${signatures}/${segment(id)}/signature`)),
  };
}

type Offers = Pick<Kyb, "offerData" | "offerSignature" | "offer" | "cancelOffer">;

function openOffers({ get, post }: Wire): Offers {
  return {
    offerData: async (asked, once) =>
      readOffer(await post("/data-requests/offers", { ...asked }, once)),
    offerSignature: async (asked, once) =>
      readOffer(await post("/signature-requests/offers", { ...asked }, once)),
    offer: async (id) => readOffer(await get(`/offers/${segment(id)}`)),
    cancelOffer: async (id) => readOffer(await post(`/offers/${segment(id)}/cancel`)),
  };
}

type Webhooks = Pick<
  Kyb,
  | "registerEndpoint"
  | "endpoint"
  | "rotateSecret"
  | "reactivate"
  | "testEndpoint"
  | "events"
  | "deliveries"
  | "redeliver"
  | "allEvents"
  | "eventDeliveries"
  | "redeliverEvent"
>;

function openWebhooks({ get, post, put }: Wire): Webhooks {
  const endpoint = "/webhook-endpoint";
  return {
    registerEndpoint: async (url) => readEndpointWithSecret(await put(endpoint, { url })),
    endpoint: async () => readEndpoint(await get(endpoint)),
    rotateSecret: async (options = {}, once) =>
      readEndpointWithSecret(await post(`${endpoint}/rotate-secret`, { ...options }, once)),
    reactivate: async () => readEndpoint(await post(`${endpoint}/reactivate`)),
    testEndpoint: async () => (await post(`${endpoint}/test`)).text("eventId"),
    events: async (kind, id, { after, limit } = {}) => {
      const answer = await get(`/${kind}/${segment(id)}/events`, { after_seq: after, limit });
      return readList(answer, "items", readEventOnItsWay);
    },
    deliveries: async (kind, id, { after, afterAttempt, limit } = {}) => {
      const page = { after_seq: after, after_attempt: afterAttempt, limit };
      const answer = await get(`/${kind}/${segment(id)}/deliveries`, page);
      return readList(answer, "items", readDeliveryAttempt);
    },
    redeliver: async (kind, id, eventId) => {
      const body = eventId === undefined ? {} : { eventId };
      return (await post(`/${kind}/${segment(id)}/redeliver`, body)).count("count");
    },
    allEvents: async (filter = {}) => readPage(await get("/events", { ...filter }), readPlaced),
    eventDeliveries: async (id, page = {}) =>
      readPage(await get(`/events/${segment(id)}/deliveries`, { ...page }), readDeliveryAttempt),
    redeliverEvent: async (id) => (await post(`/events/${segment(id)}/redeliver`)).count("count"),
  };
}

/** One segment of a path: an id from outside must not become another path. */
function segment(id: string): string {
  // An empty id would address another endpoint; undefined would fail below with a TypeError.
  if (typeof id !== "string" || id === "") throw misconfigured("id");
  // URL parsers resolve `.` and `..` even if they are encoded. Encoded twice they stay an id, one that does not exist.
  // Half of a surrogate pair, which JSON can hold, would make encodeURIComponent throw.
  return encodeURIComponent(id.toWellFormed()).replace(/^\.{1,2}$/, (dots) =>
    "%252E".repeat(dots.length),
  );
}

function readPlaced(item: Members): PlacedKybEvent {
  return { ...readEventOnItsWay(item), streamId: item.text("streamId") };
}

function readEventOnItsWay(item: Members): KybEventOnItsWay {
  return {
    eventId: item.text("eventId"),
    event: item.text("event"),
    seq: item.count("seq"),
    createdAt: item.count("createdAt"),
    ...(item.has("deliveredAt") && { deliveredAt: item.count("deliveredAt") }),
    attempts: item.count("attempts"),
    ...(item.has("nextAttemptAt") && { nextAttemptAt: item.count("nextAttemptAt") }),
    ...(item.has("body") && { content: readKybEvent(item.text("body"), invalid) }),
  };
}

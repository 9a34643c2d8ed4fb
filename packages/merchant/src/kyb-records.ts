// The answers of the KYB endpoints (decisions, section 6), and how they are read.
import type { Address, Hex, Hex32 } from "@svc/protocol";

import { invalid, openAnswer, readList } from "./api-answer.ts";
import { readLink, readUniversalLink } from "./links.ts";
import type { Members } from "./members.ts";

/** What everybody may know about a business. */
export interface BusinessStatus {
  walletAddress: Address;
  businessName: string;
  /** The domain of its website, if an issuer attested one. */
  domain?: string;
  /** `active`, `suspended` or `moved`. */
  status: string;
  verified: boolean;
  /** Unix seconds, as every time here. */
  registeredAt: number;
  /** The wallet in which it continues, if it moved and you may know that. Only `verifyWalletChange` proves it. */
  successor?: Address;
}

/** How it decides: by the current rule of each category. */
export interface BusinessRules extends BusinessStatus {
  memberCount: number;
  governanceRules: { category: string; approvalMode: string }[];
}

/** Names are present once the business has logged in to you, released to you or signed for you. */
export interface BusinessMembers {
  walletAddress: Address;
  totalMembers: number;
  members: { name?: string; walletAddress: Address; votingRights: boolean; isCreator: boolean }[];
}

/** Rappen of one field, whatever the number of persons. */
export interface PriceLine {
  field: string;
  tier: string;
  cents: number;
}

/** What a request for these fields would cost. */
export interface Quote {
  currency: string;
  totalCents: number;
  lines: PriceLine[];
}

/** What you asked a business for. */
export interface DataRequestRecord {
  requestId: string;
  businessWalletAddress: Address;
  purpose: string;
  reference?: string;
  fields: {
    name: string;
    hash: Hex32;
    naturalPersonPii: boolean;
    optional: boolean;
    subjectType: string;
  }[];
  status: string;
  reason?: string;
  createdAt: number;
  expiresAt: number;
  price: { quotedCents: number; currency: string; lines: PriceLine[] };
}

/** The attestation, byte for byte as it was delivered. Nothing in it is verified: see `verifyAttestation`. */
export interface Release {
  requestId: string;
  attestation: string;
  releasedAt: number;
  expiresAt: number;
}

/** What you asked a business to sign. */
export interface SignatureRequestRecord {
  requestId: string;
  businessWalletAddress: Address;
  messageKind: string;
  digest: Hex32;
  purpose: string;
  status: string;
  reason?: string;
  createdAt: number;
  expiresAt: number;
}

/** What the business signed, for any ERC-1271 verifier. Nothing in it is verified: see `verifyBusinessSignature`. */
export interface BusinessSignature {
  requestId: string;
  businessWalletAddress: Address;
  signature: Hex;
  digest: Hex32;
  signedAt: number;
  transactionHash: Hex32;
  verification: { method: string; contract: Address; chainId: number; selector: string };
}

/** A request for whichever business scans it first. */
export interface Offer {
  offerId: string;
  status: "OPEN" | "CLAIMED" | "CANCELLED" | "EXPIRED";
  /** `svc:..`: the target of a button on the phone. */
  link: string;
  universalLink: string;
  /** Base64 of a PNG. */
  qrcode: string;
  expiresAt: number;
  businessWalletAddress?: Address;
  requestId?: string;
}

/** Where your KYB webhooks go. */
export interface WebhookEndpoint {
  url: string;
  /** Present only after registration and rotation: store it. */
  secret?: string;
  secretVersion: number;
  /** False while deliveries are held. */
  active: boolean;
  createdAt: number;
}

/** The answer to registration and rotation: nothing else ever holds the secret. */
export interface EndpointWithSecret extends WebhookEndpoint {
  secret: string;
}

/** Money in CHF. */
export interface BillingAccount {
  currency: string;
  totalChf: number;
  spentChf: number;
  /** The part of the money spent that went to packages; earlier brokers do not say. */
  packagesChf?: number;
  /** Kept back for open requests. */
  frozenChf: number;
  availableChf: number;
  billingEnabled: boolean;
}

/** What one field costs, however many persons it covers. */
export interface FieldPrice {
  name: string;
  tier: string;
  cents: number;
  /** According to the catalogue; every field of a sole proprietor is personal. */
  naturalPersonPii: boolean;
  subjectType: string;
}

/** What every field costs. */
export interface Pricing {
  currency: string;
  /** In catalogue order. */
  fields: FieldPrice[];
}

/** What one release cost. */
export interface Charge {
  chargeId: string;
  requestId: string;
  businessWalletAddress: Address;
  chargedAt: number;
  currency: string;
  totalCents: number;
  lines: PriceLine[];
}

/** Whether released fields still hold; both lists in the order of the call. */
export interface CompanyValidity {
  valid: { name: string; subject: string }[];
  invalid: {
    name: string;
    subject: string;
    /** UNKNOWN: there is no such leaf, or the business has never released anything to you. */
    reason: "EXPIRED" | "REVOKED" | "UNKNOWN";
  }[];
}

/** One attempt to deliver an event. */
export interface DeliveryAttempt {
  eventId: string;
  seq: number;
  event: string;
  /** From 1. */
  attempt: number;
  /** When it began. */
  at: number;
  /** `refused` means any answer other than 2xx; `failed` means no answer. */
  outcome: "delivered" | "refused" | "failed";
  /** The HTTP status of your answer and the time until it came; both absent with `failed`. */
  status?: number;
  durationMs?: number;
}

export function readBusinessStatus(body: Members): BusinessStatus {
  return {
    walletAddress: body.address("walletAddress"),
    businessName: body.text("businessName"),
    ...(body.has("domain") && { domain: body.text("domain") }),
    status: body.text("status"),
    verified: body.flag("verified"),
    registeredAt: body.count("registeredAt"),
    ...(body.has("successor") && { successor: body.address("successor") }),
  };
}

export function readBusinessRules(body: Members): BusinessRules {
  return {
    ...readBusinessStatus(body),
    memberCount: body.count("memberCount"),
    governanceRules: readList(body, "governanceRules", (rule) => ({
      category: rule.text("category"),
      approvalMode: rule.text("approvalMode"),
    })),
  };
}

export function readBusinessMembers(body: Members): BusinessMembers {
  return {
    walletAddress: body.address("walletAddress"),
    totalMembers: body.count("totalMembers"),
    members: readList(body, "members", readMember),
  };
}

function readMember(member: Members): BusinessMembers["members"][number] {
  return {
    ...(typeof member.all["name"] === "string" && { name: member.anyText("name") }),
    walletAddress: member.address("walletAddress"),
    votingRights: member.flag("votingRights"),
    isCreator: member.flag("isCreator"),
  };
}

export function readQuote(body: Members): Quote {
  return {
    currency: body.text("currency"),
    totalCents: body.count("totalCents"),
    lines: readLines(body),
  };
}

function readLines(body: Members): PriceLine[] {
  return readList(body, "lines", (line) => ({
    field: line.text("field"),
    tier: line.text("tier"),
    cents: line.count("cents"),
  }));
}

export function readDataRequest(body: Members): DataRequestRecord {
  const price = openAnswer(body.record("price"));
  return {
    requestId: body.text("requestId"),
    businessWalletAddress: body.address("businessWalletAddress"),
    purpose: body.text("purpose"),
    ...(body.has("reference") && { reference: body.anyText("reference") }),
    fields: readList(body, "fields", readAskedField),
    status: body.text("status"),
    ...(body.has("reason") && { reason: body.text("reason") }),
    createdAt: body.count("createdAt"),
    expiresAt: body.count("expiresAt"),
    price: {
      quotedCents: price.count("quotedCents"),
      currency: price.text("currency"),
      lines: readLines(price),
    },
  };
}

function readAskedField(field: Members): DataRequestRecord["fields"][number] {
  return {
    name: field.text("name"),
    hash: field.hash("hash"),
    naturalPersonPii: field.flag("naturalPersonPii"),
    optional: field.flag("optional"),
    subjectType: field.text("subjectType"),
  };
}

export function readRelease(body: Members): Release {
  return {
    requestId: body.text("requestId"),
    attestation: body.text("attestation"),
    releasedAt: body.count("releasedAt"),
    expiresAt: body.count("expiresAt"),
  };
}

export function readSignatureRequest(body: Members): SignatureRequestRecord {
  return {
    requestId: body.text("requestId"),
    businessWalletAddress: body.address("businessWalletAddress"),
    messageKind: body.text("messageKind"),
    digest: body.hash("digest"),
    purpose: body.text("purpose"),
    status: body.text("status"),
    ...(body.has("reason") && { reason: body.text("reason") }),
    createdAt: body.count("createdAt"),
    expiresAt: body.count("expiresAt"),
  };
}

export function readSignature(body: Members): BusinessSignature {
  const verification = openAnswer(body.record("verification"));
  const signature = body.text("signature");
  if (!/^0x[0-9a-f]+$/.test(signature)) throw invalid("signature");
  return {
    requestId: body.text("requestId"),
    businessWalletAddress: body.address("businessWalletAddress"),
    signature: signature as Hex,
    digest: body.hash("digest"),
    signedAt: body.count("signedAt"),
    transactionHash: body.hash("transactionHash"),
    verification: {
      method: verification.text("method"),
      contract: verification.address("contract"),
      chainId: verification.count("chainId"),
      selector: verification.text("selector"),
    },
  };
}

export function readOffer(body: Members): Offer {
  return {
    offerId: body.text("offerId"),
    status: body.oneOf("status", ["OPEN", "CLAIMED", "CANCELLED", "EXPIRED"]),
    link: readLink(body),
    universalLink: readUniversalLink(body),
    qrcode: body.text("qrcode"),
    expiresAt: body.count("expiresAt"),
    ...(body.has("businessWalletAddress") && {
      businessWalletAddress: body.address("businessWalletAddress"),
    }),
    ...(body.has("requestId") && { requestId: body.text("requestId") }),
  };
}

export function readEndpoint(body: Members): WebhookEndpoint {
  return {
    url: body.text("url"),
    ...(body.has("secret") && { secret: body.text("secret") }),
    secretVersion: body.count("secretVersion"),
    active: body.flag("active"),
    createdAt: body.count("createdAt"),
  };
}

export function readEndpointWithSecret(body: Members): EndpointWithSecret {
  return { ...readEndpoint(body), secret: body.text("secret") };
}

export function readBilling(body: Members): BillingAccount {
  const chf = (name: string): number => {
    const value = body.all[name];
    if (typeof value !== "number" || !Number.isFinite(value)) throw invalid(name);
    return value;
  };
  return {
    currency: body.text("currency"),
    totalChf: chf("totalChf"),
    spentChf: chf("spentChf"),
    ...(body.has("packagesChf") && { packagesChf: chf("packagesChf") }),
    frozenChf: chf("frozenChf"),
    availableChf: chf("availableChf"),
    billingEnabled: body.flag("billingEnabled"),
  };
}

export function readPricing(body: Members): Pricing {
  return {
    currency: body.text("currency"),
    fields: readList(body, "fields", (field) => ({
      name: field.text("name"),
      tier: field.text("tier"),
      cents: field.count("cents"),
      naturalPersonPii: field.flag("naturalPersonPii"),
      subjectType: field.text("subjectType"),
    })),
  };
}

export function readCharge(item: Members): Charge {
  return {
    chargeId: item.text("chargeId"),
    requestId: item.text("requestId"),
    businessWalletAddress: item.address("businessWalletAddress"),
    chargedAt: item.count("chargedAt"),
    currency: item.text("currency"),
    totalCents: item.count("totalCents"),
    lines: readLines(item),
  };
}

export function readCompanyValidity(body: Members): CompanyValidity {
  return {
    valid: readList(body, "valid", readPlace),
    invalid: readList(body, "invalid", readInvalid),
  };
}

function readPlace(field: Members): CompanyValidity["valid"][number] {
  return { name: field.text("name"), subject: field.anyText("subject") };
}

function readInvalid(field: Members): CompanyValidity["invalid"][number] {
  const reason = field.oneOf("reason", ["EXPIRED", "REVOKED", "UNKNOWN"]);
  return { ...readPlace(field), reason };
}

export function readDeliveryAttempt(item: Members): DeliveryAttempt {
  return { ...readAttempt(item), seq: item.count("seq") };
}

/** What delivery attempts have in common for events of requests and of orders. */
export function readAttempt(item: Members): Omit<DeliveryAttempt, "seq"> {
  return {
    eventId: item.text("eventId"),
    event: item.text("event"),
    attempt: item.count("attempt"),
    at: item.count("at"),
    outcome: item.oneOf("outcome", ["delivered", "refused", "failed"]),
    ...(item.has("status") && { status: item.count("status") }),
    ...(item.has("durationMs") && { durationMs: item.count("durationMs") }),
  };
}

// A business as the service reports it, written from the service document and the decisions alone: the far end for
// tests of the shop's pages for companies.
import { createHmac } from "node:crypto";

import { commitmentOf, leafOf, type Address, type Hex32 } from "@svc/protocol";
import type { JWTPayload } from "jose";

import type { FakeIssuer, KycRefusal } from "./fake-issuer.ts";
import { answerKyb } from "./fake-kyb-answers.ts";

export const business: Address = "0x1111111111111111111111111111111111111111";
/** Where it goes on after a move. */
export const newBusiness: Address = "0x2222222222222222222222222222222222222222";
export const businessName = "Bergblick Handels AG";
export const clientDomainId = "0190c0de-0000-7000-8000-000000000000";
export const requestId = "01JD000000000000000000000A";
export const signatureRequestId = "01JD000000000000000000000S";
export const endpointSecret = "ab".repeat(32);
export const transactionHash = `0x${"22".repeat(32)}`;
export const chainId = 31_337;
/** As the wallet of a business answers it: a version and the digest. */
export const businessSignature = `0x01${"33".repeat(32)}`;

/** The additional claims of the id token of a business login. */
export const businessClaims = {
  ext: {
    login_type: "business",
    business: { id: business, name: businessName, domain: null, verified: true, status: "active" },
  },
};

export interface FakeBusiness {
  /** Bodies of the calls, in order. */
  readonly asked: Record<string, unknown>[];
  /** Where the endpoint was registered, each time. */
  readonly endpoints: unknown[];
  /** What the chain says of signatures. */
  isSigned: boolean;
  /** The refusal that the next calls for data or signatures get. */
  refusal: KycRefusal | null;
  /** Called before each call for data or signatures is answered. */
  beforeAnswer?: () => Promise<unknown>;
  /** A released attestation, changed. */
  attestation(changed?: JWTPayload): Promise<string>;
  /** An attestation of its move, changed, and the body of the event that carries it. */
  moved(changed?: JWTPayload): Promise<string>;
  movedBody(changed?: JWTPayload): Promise<string>;
}

/** Teaches a fake issuer everything that a shop asks about companies; its chain answers at `/rpc`. */
export function playBusiness(issuer: FakeIssuer): FakeBusiness {
  const fake: FakeBusiness = {
    asked: [],
    endpoints: [],
    isSigned: true,
    refusal: null,
    attestation: async (changed = {}) => {
      const claims = { ...releaseOf(issuer), ...changed };
      return issuer.sign("kyb-attestation+jwt", claims);
    },
    moved: async (changed = {}) =>
      issuer.sign("kyb-attestation+jwt", { ...moveOf(issuer), ...changed }),
    movedBody: async (changed = {}) => movedBodyOf(issuer, await fake.moved(changed)),
  };
  const take = async (body: Record<string, unknown>): Promise<void> => {
    if (fake.refusal !== null) throw fake.refusal;
    fake.asked.push(body);
    await fake.beforeAnswer?.();
  };
  const begun = {
    businessWalletAddress: business,
    purpose: "as asked",
    status: "pending_approval",
    createdAt: issuer.now,
    expiresAt: issuer.now + 86_400,
  };
  answerKyb(issuer, {
    business,
    requestId,
    signatureRequestId,
    bodyOf: (event, of) => kybBody(event, issuer, of),
    movedBody: movedBodyOf(issuer, "unread"),
  });
  issuer.kyc.set("PUT /api/v1/kyb/webhook-endpoint", ({ body }) => {
    fake.endpoints.push(body["url"]);
    return {
      url: body["url"],
      secret: endpointSecret,
      secretVersion: fake.endpoints.length,
      active: true,
      createdAt: issuer.now,
    };
  });
  issuer.kyc.set("POST /api/v1/kyb/data-requests", async ({ body }) => {
    await take(body);
    const price = { quotedCents: 1000, currency: "CHF", lines: [] };
    return { requestId, ...begun, fields: [], price };
  });
  issuer.kyc.set("POST /api/v1/kyb/signature-requests", async ({ body }) => {
    await take(body);
    const digest = `0x${"33".repeat(32)}`;
    return { requestId: signatureRequestId, ...begun, messageKind: "TEXT", digest };
  });
  issuer.kyc.set("GET /.well-known/kyb-jwks.json", () => ({
    keys: issuer.keys.map(({ publicJwk }) => publicJwk),
  }));
  issuer.kyc.set("POST /rpc", ({ body }) => {
    const id = body["id"];
    const magic = `0x${(fake.isSigned ? "1626ba7e" : "ffffffff").padEnd(64, "0")}`;
    const result = body["method"] === "eth_chainId" ? `0x${chainId.toString(16)}` : magic;
    return { jsonrpc: "2.0", id, result };
  });
  return fake;
}

const moveEvent = "kyb.business.wallet_address_changed";
const moveStream = "01JD000000000000000000000M";

const moveDataOf = ({ now }: FakeIssuer) => ({
  business_wallet_address: business,
  new_business_wallet_address: newBusiness,
  changed_at: now - 2,
});

function moveOf(issuer: FakeIssuer): JWTPayload {
  const { url, now } = issuer;
  return {
    iss: `${url}/kyb`,
    aud: clientDomainId,
    sub: business,
    jti: eventIdOf(1, moveStream),
    event: moveEvent,
    stream_id: moveStream,
    seq: 1,
    livemode: true,
    iat: now,
    exp: now + 30 * 86_400,
    ...moveDataOf(issuer),
  };
}

function movedBodyOf(issuer: FakeIssuer, attestation: string): string {
  const body = kybBody(moveEvent, issuer, { seq: 1, of: moveStream, attestation });
  return JSON.stringify({ ...JSON.parse(body), data: moveDataOf(issuer) });
}

/** The fields that the shop asks for, of two directors. */
export const releasedValues = [
  { name: "BUSINESS_LEGAL_NAME", subject: "", value: businessName },
  { name: "BUSINESS_REGISTRATION_NUMBER", subject: "", value: "CHE-123.456.788" },
  { name: "BUSINESS_DIRECTOR_NAME", subject: "director-1", value: "Alice Example" },
  { name: "BUSINESS_DIRECTOR_NAME", subject: "director-2", value: "Bob Beispiel" },
] as const;

function releaseOf({ url, now }: FakeIssuer): JWTPayload {
  const expiresAt = now + 86_400;
  const fields = releasedValues.map(({ name, subject, value }) => {
    const pepper: Hex32 = `0x${"ab".repeat(32)}`;
    const commitment = commitmentOf({ data: value, pepper });
    const field = subject === "" ? name : `${name}/${subject}`;
    return {
      name,
      subject,
      value,
      pepper,
      hash: leafOf({ user: business, field, commitment, expiresAt }),
      subject_type: subject === "" ? "BUSINESS" : "DIRECTOR",
      provenance: "Register AG",
      as_of: now - 5,
      expires_at: expiresAt,
    };
  });
  return {
    iss: `${url}/kyb`,
    aud: clientDomainId,
    sub: business,
    jti: eventIdOf(2),
    event: "kyb.data_request.released",
    stream_id: requestId,
    seq: 2,
    livemode: true,
    iat: now,
    exp: now + 30 * 86_400,
    approval: { approved_at: now - 1, action_id: requestId, threshold_met: true },
    fields,
  };
}

const eventIdOf = (seq: number, stream = requestId): string =>
  `01JE${stream.slice(-1)}${String(seq).padStart(21, "0")}`;

/** The body of an event. */
export function kybBody(
  event: string,
  { now }: { now: number },
  given: {
    seq: number;
    data?: Record<string, unknown>;
    attestation?: string;
    of?: string;
    id?: string;
  },
): string {
  const {
    seq,
    data = {},
    attestation,
    of: stream = requestId,
    id = eventIdOf(seq, stream),
  } = given;
  return JSON.stringify({
    event,
    event_id: id,
    stream_id: stream,
    seq,
    timestamp: now,
    api_version: "v1",
    livemode: true,
    data: {
      request_id: stream,
      business_wallet_address: business,
      status: event.split(".")[2],
      ...data,
    },
    ...(attestation !== undefined && { attestation }),
  });
}

/** The headers of a delivery at this time. */
export function kybHeaders(
  body: string,
  { t, secret = endpointSecret }: { t: number; secret?: string },
): Record<string, string> {
  const mac = createHmac("sha256", secret).update(`${t}.${body}`).digest("hex");
  return { "svc-kyb-signature": `t=${t},v1=${mac},kv=1` };
}

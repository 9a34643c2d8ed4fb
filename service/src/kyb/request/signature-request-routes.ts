import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { callerReasons, requireEntitlement, kybBodyReasons } from "../entitlement.ts";
import { readDocument } from "./document.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import {
  businessAddress,
  eip155Id,
  digest,
  endReason,
  givenAddress,
  messageKind,
  requestId,
  RequestParams,
  seconds,
  signature,
  signingTransaction,
  verificationMembers,
} from "../member-schemas.ts";
import { readPurpose } from "./purpose.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { type RequestKind, requestRoutes } from "./request-routes.ts";
import { isSigned, recordOf, signatureOf, type SignatureRequest } from "./signature-request.ts";
import {
  cancelSignatureRequest,
  getSignatureRequest,
  requestSignature,
} from "./signature-requests.ts";
import { listRequests } from "./signature-request-store.ts";
import { apiKeyOf } from "../../accounts/index.ts";

const path = "/api/v1/kyb/signature-requests";
/** Room for a document, whose JSON may have twice its size. */
const bodyLimit = 160 * 1024;
const signatureReasons = [...callerReasons, "kyb_signature_not_entitled"] as const;

/** The members that requests and offers have in common. */
export const documentMembers = {
  messageKind: Type.Union([Type.Literal("TEXT"), Type.Literal("TYPED_DATA")], {
    description: "What is signed: `message` by EIP-191, or `typedData` by EIP-712.",
  }),
  message: Type.Optional(
    Type.String({ description: "For a TEXT: the text, at most 4,096 bytes." }),
  ),
  typedData: Type.Optional(
    Type.Unknown({
      description:
        "For TYPED_DATA: an EIP-712 document with domain, types, primaryType and message.",
    }),
  ),
  purpose: Type.String({ description: "Shown to the members, 8 to 280 characters." }),
  expiresInSeconds: Type.Optional(
    Type.Integer({
      description: "How long members may vote; values outside 300 to 86,400 are clamped.",
    }),
  ),
};

const RequestBody = Type.Object(
  { businessWalletAddress: givenAddress("The business to ask"), ...documentMembers },
  { additionalProperties: false },
);

const status = Type.Union(
  [
    Type.Literal("pending_approval"),
    Type.Literal("signed"),
    Type.Literal("refused"),
    Type.Literal("expired"),
    Type.Literal("cancelled"),
    Type.Literal("failed"),
  ],
  {
    description:
      "`pending_approval` until it ends: `signed` once the chain has recorded it, `refused` by the members, `expired` without a decision, `cancelled` by you, or `failed`.",
  },
);

const requestRecord = Type.Object(
  {
    requestId,
    businessWalletAddress: businessAddress,
    messageKind,
    digest,
    purpose: Type.String({ description: "Why you ask, as the members see it." }),
    status,
    reason: Type.Optional(endReason),
    createdAt: seconds("When the request was made"),
    expiresAt: seconds("Until when members may vote"),
  },
  {
    title: "SignatureRequest",
    description: "The request. It says neither who voted nor how many.",
  },
);

const signatureRecord = Type.Object(
  {
    requestId,
    businessWalletAddress: businessAddress,
    signature,
    digest,
    signedAt: seconds("When the contract recorded it"),
    transactionHash: signingTransaction,
    verification: Type.Object(
      {
        method: verificationMembers.method,
        contract: verificationMembers.contract,
        chainId: eip155Id,
        selector: verificationMembers.selector,
      },
      { description: "How to check the signature on chain." },
    ),
  },
  {
    title: "BusinessSignature",
    description:
      "The signature, which any ERC-1271 verifier accepts until the members withdraw it.",
  },
);

/** Signature requests, for merchants (decisions section 6). */
export async function signatureRequestRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:signature");
    createRoute(ctx, scope);
    requestRoutes(ctx, scope, signatureKind(ctx));
    signatureRoute(ctx, scope);
  });
}

function signatureKind(ctx: KybContext): RequestKind<SignatureRequest> {
  return {
    path,
    name: "signature request",
    type: "SignatureRequest",
    reasons: signatureReasons,
    record: requestRecord,
    status,
    show: recordOf,
    list: async ({ clientDomainId }, page) => listRequests(ctx.db, clientDomainId, page),
    get: async (key, id) => getSignatureRequest(ctx, key, id),
    cancel: async (tx, of) => cancelSignatureRequest(ctx, tx, of),
  };
}

function createRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    path,
    {
      bodyLimit,
      schema: {
        operationId: "createSignatureRequest",
        summary: "Ask a business to sign a document",
        description:
          "Requires an `Idempotency-Key`. The members of the business are asked at once.",
        tags: ["kyb"],
        body: RequestBody,
        response: {
          200: requestRecord,
          201: requestRecord,
          ...refusals(
            ...kybBodyReasons,
            ...signatureReasons,
            "idempotency_key_required",
            "idempotency_key_conflict",
            "business_not_found",
            "no_webhook_endpoint",
            "document_refused",
            "business_not_verified",
            "requester_blocked",
          ),
        },
      },
    },
    async (request, reply) => {
      const requester = apiKeyOf(request);
      const { body } = request;
      const given = {
        business: readAddress("businessWalletAddress", body.businessWalletAddress),
        ...readDocument(body),
        purpose: readPurpose(body.purpose),
        expiresInSeconds: body.expiresInSeconds ?? null,
      };
      return idempotently(ctx, { request, reply, isKeyRequired: true }, async (tx) => {
        const made = await requestSignature(ctx, tx, { requester, request: given });
        return { status: 201, body: recordOf(made) };
      });
    },
  );
}

function signatureRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    `${path}/:id/signature`,
    {
      schema: {
        operationId: "getSignature",
        summary: "Get the signature of the business",
        tags: ["kyb"],
        params: RequestParams,
        response: {
          200: signatureRecord,
          ...refusals(...signatureReasons, "request_not_found", "not_signed"),
        },
      },
    },
    async (request) => {
      const found = await getSignatureRequest(ctx, apiKeyOf(request), request.params.id);
      if (!isSigned(found)) throw new Problem("not_signed");
      return signatureOf(found, ctx.chain.chainId);
    },
  );
}

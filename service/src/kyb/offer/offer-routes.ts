import { NoMembers, Type } from "../../platform/http/schema.ts";
import { type ApiKey, apiKeyOf } from "../../accounts/index.ts";
import type { Http } from "../../platform/http/http.ts";
import { qrPng } from "../../platform/qr/qr-png.ts";
import { refusals } from "../../platform/http/refusals.ts";
import {
  callerReasons,
  checkEntitled,
  kybBodyReasons,
  requireEntitlement,
} from "../entitlement.ts";
import { dataMembers, gatePersonalFields, readTerms } from "../request/data-request-terms.ts";
import { readDocument } from "../request/document.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import { idParams, seconds } from "../member-schemas.ts";
import { linksOf, type OfferedRequest, offerStatusOf } from "./offer.ts";
import { cancelOffer, getOffer, makeOffer, type OpenedOffer } from "./offers.ts";
import { readPurpose } from "../request/purpose.ts";
import { documentMembers } from "../request/signature-request-routes.ts";

const bodyLimit = 160 * 1024;
const OfferParams = idParams("The `offerId`.");

const offerRecord = Type.Object(
  {
    offerId: Type.String({ description: "The id of the offer, a ULID." }),
    status: Type.Union(
      [
        Type.Literal("OPEN"),
        Type.Literal("CLAIMED"),
        Type.Literal("CANCELLED"),
        Type.Literal("EXPIRED"),
      ],
      {
        description:
          "`OPEN` until a business claims it, you cancel it, or its time passes. It does not tell what the members decide.",
      },
    ),
    link: Type.String({ description: "The link for a button on the phone." }),
    universalLink: Type.String({ description: "The same link for phones without the app." }),
    qrcode: Type.String({ description: "The QR code, as a PNG in Base64." }),
    expiresAt: seconds("Until when it can be claimed"),
    businessWalletAddress: Type.Optional(
      Type.String({ description: "Once the offer is claimed." }),
    ),
    requestId: Type.Optional(Type.String({ description: "Once the offer is claimed." })),
  },
  {
    title: "Offer",
    description: "The offer: a request to the first business that scans its code.",
  },
);

const offerMembers = {
  offerExpiresInSeconds: Type.Optional(
    Type.Integer({
      description: "How long the offer can be claimed: 300 to 3,600. Default: 1,800.",
    }),
  ),
};

/** Offers, for merchants (decisions section 6, Offers). */
export async function offerRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:signature");
    offerSignatureRoute(ctx, scope);
  });
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:data-request");
    offerDataRoute(ctx, scope);
  });
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:read");
    scope.addHook("onRequest", async (request) => checkEitherKind(apiKeyOf(request)));
    readRoutes(ctx, scope);
  });
}

const offerReasons = [
  ...kybBodyReasons,
  ...callerReasons,
  "idempotency_key_required",
  "idempotency_key_conflict",
  "no_webhook_endpoint",
] as const;

function offerSignatureRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    "/api/v1/kyb/signature-requests/offers",
    {
      bodyLimit,
      schema: {
        operationId: "createSignatureRequestOffer",
        summary: "Offer a document for signature by QR code",
        description:
          "Requires an `Idempotency-Key`. The first business that scans the code is asked.",
        tags: ["kyb"],
        body: Type.Object({ ...documentMembers, ...offerMembers }, { additionalProperties: false }),
        response: {
          200: offerRecord,
          201: offerRecord,
          ...refusals(...offerReasons, "kyb_signature_not_entitled", "document_refused"),
        },
      },
    },
    async (request, reply) => {
      const key = apiKeyOf(request);
      const { body } = request;
      const asked: OfferedRequest = {
        kind: "signature_request",
        ...readDocument(body),
        purpose: readPurpose(body.purpose),
        expiresInSeconds: body.expiresInSeconds ?? null,
      };
      return idempotently(ctx, { request, reply, isKeyRequired: true }, async (tx) => {
        const windowSeconds = body.offerExpiresInSeconds;
        const made = await makeOffer(ctx, tx, { key, request: asked, windowSeconds });
        return { status: 201, body: recordOf(ctx, made) };
      });
    },
  );
}

function offerDataRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    "/api/v1/kyb/data-requests/offers",
    {
      preValidation: gatePersonalFields,
      schema: {
        operationId: "createDataRequestOffer",
        summary: "Offer a data request by QR code",
        description:
          "Requires an `Idempotency-Key`. The first business that scans the code is asked.",
        tags: ["kyb"],
        body: Type.Object({ ...dataMembers, ...offerMembers }, { additionalProperties: false }),
        response: {
          200: offerRecord,
          201: offerRecord,
          ...refusals(...offerReasons, "pii_not_entitled", "field_not_priced", "unknown_field"),
        },
      },
    },
    async (request, reply) => {
      const key = apiKeyOf(request);
      const { body } = request;
      const asked: OfferedRequest = { kind: "data_request", ...readTerms(body) };
      return idempotently(ctx, { request, reply, isKeyRequired: true }, async (tx) => {
        const windowSeconds = body.offerExpiresInSeconds;
        const made = await makeOffer(ctx, tx, { key, request: asked, windowSeconds });
        return { status: 201, body: recordOf(ctx, made) };
      });
    },
  );
}

/** Both entitlement refusals: which entitlement is needed is known only once the offer has been read. */
const readReasons = [...callerReasons, "kyb_signature_not_entitled", "offer_not_found"] as const;
function readRoutes(ctx: KybContext, scope: Http): void {
  scope.get(
    "/api/v1/kyb/offers/:id",
    {
      schema: {
        operationId: "getOffer",
        summary: "Get an offer",
        tags: ["kyb"],
        params: OfferParams,
        response: { 200: offerRecord, ...refusals(...readReasons) },
      },
    },
    async (request) => {
      const key = apiKeyOf(request);
      const found = await getOffer(ctx, key, request.params.id);
      checkKind(key, found);
      return recordOf(ctx, found);
    },
  );
  scope.post(
    "/api/v1/kyb/offers/:id/cancel",
    {
      schema: {
        operationId: "cancelOffer",
        summary: "Cancel an open offer",
        tags: ["kyb"],
        params: OfferParams,
        body: NoMembers,
        response: {
          200: offerRecord,
          ...refusals(
            ...kybBodyReasons,
            ...readReasons,
            "offer_not_open",
            "idempotency_key_conflict",
          ),
        },
      },
    },
    async (request, reply) => {
      const key = apiKeyOf(request);
      checkKind(key, await getOffer(ctx, key, request.params.id));
      return idempotently(ctx, { request, reply }, async (tx) => {
        const ended = await cancelOffer(ctx, tx, { key, id: request.params.id });
        return { status: 200, body: recordOf(ctx, ended) };
      });
    },
  );
}

/**
 * A key that may make neither kind of offer is refused before an offer is looked up: 403 comes before 404 (decisions
 * section 1, Errors).
 */
function checkEitherKind(key: ApiKey): void {
  if (!key.entitlements.has("kyb:signature")) checkEntitled(key, "kyb:data-request");
}

/** An offer exists only for keys that may make offers of its kind. */
function checkKind(key: ApiKey, { offer }: OpenedOffer): void {
  checkEntitled(key, offer.kind === "data_request" ? "kyb:data-request" : "kyb:signature");
}

function recordOf(ctx: KybContext, { offer }: OpenedOffer) {
  const { link, universalLink } = linksOf(ctx, offer);
  return {
    offerId: offer.id,
    status: offerStatusOf(offer, ctx.clock.now()),
    link,
    universalLink,
    qrcode: qrPng(link).toString("base64"),
    expiresAt: offer.expiresAt,
    ...(offer.business === null ? {} : { businessWalletAddress: offer.business }),
    ...(offer.requestId === null ? {} : { requestId: offer.requestId }),
  };
}

import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { callerReasons, requireEntitlement, kybBodyReasons } from "../entitlement.ts";
import { type DataRequest, linesOf, recordOf } from "./data-request.ts";
import { listRequests } from "./data-request-store.ts";
import {
  dataMembers,
  fieldMembers,
  gatePersonalFields,
  readAskedFields,
  readTerms,
} from "./data-request-terms.ts";
import { cancelDataRequest, getDataRequest, quoteFields, requestData } from "./data-requests.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import {
  businessAddress,
  cents,
  currencyCode,
  endReason,
  fieldName,
  givenAddress,
  requestId,
  seconds,
  subjectType,
} from "../member-schemas.ts";
import { currency, totalOf } from "../billing/pricing.ts";
import { releaseRoutes } from "../release/release-routes.ts";
import { type RequestKind, requestRoutes } from "./request-routes.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { priceLine } from "../billing/price-line-schema.ts";
import { apiKeyOf } from "../../accounts/index.ts";

const path = "/api/v1/kyb/data-requests";

const status = Type.Union(
  [
    Type.Literal("pending_approval"),
    Type.Literal("released"),
    Type.Literal("refused"),
    Type.Literal("cancelled"),
    Type.Literal("failed"),
  ],
  {
    description:
      "`pending_approval` until it ends: `released`, `refused` (declined or out of time), `cancelled` by you, or `failed` because it could not be released.",
  },
);

const requestRecord = Type.Object(
  {
    requestId,
    businessWalletAddress: businessAddress,
    purpose: Type.String({ description: "Why you ask, as the members see it." }),
    reference: Type.Optional(
      Type.String({ description: "Your own reference; absent if you gave none." }),
    ),
    fields: Type.Array(
      Type.Object({
        name: fieldName,
        hash: Type.String({ description: "keccak256 of the name." }),
        naturalPersonPii: Type.Boolean({
          description:
            "Whether it was personal when you asked: by the catalogue, or since the business is a sole proprietor.",
        }),
        optional: Type.Boolean({ description: "Whether the members may withhold it." }),
        subjectType,
      }),
      { description: "What you asked for, the required fields first." },
    ),
    status,
    reason: Type.Optional(endReason),
    createdAt: seconds("When the request was made"),
    expiresAt: seconds("Until when members may vote"),
    price: Type.Object(
      {
        quotedCents: cents("The maximum price, held until the request ends"),
        currency: currencyCode,
        lines: Type.Array(priceLine, {
          description: "One line for each field that you asked for, in the same order.",
        }),
      },
      { description: "What was quoted when the request was made; a charge may be lower." },
    ),
  },
  {
    title: "DataRequest",
    description: "The request. It says neither who voted nor how many.",
  },
);

/** Data requests, for merchants (decisions section 6). */
export async function dataRequestRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:data-request");
    quoteRoute(ctx, scope);
    createRoute(ctx, scope);
    requestRoutes(ctx, scope, dataRequestKind(ctx));
    releaseRoutes(ctx, scope, path);
  });
}

function dataRequestKind(ctx: KybContext): RequestKind<DataRequest> {
  return {
    path,
    name: "data request",
    type: "DataRequest",
    reasons: callerReasons,
    record: requestRecord,
    status,
    show: recordOf,
    list: async ({ clientDomainId }, page) => listRequests(ctx.db, clientDomainId, page),
    get: async (key, id) => getDataRequest(ctx, key, id),
    cancel: async (tx, of) => cancelDataRequest(ctx, tx, of),
  };
}

function quoteRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    `${path}/quote`,
    {
      config: { onlyReads: true },
      preValidation: gatePersonalFields,
      schema: {
        operationId: "quoteDataRequest",
        summary: "Get the maximum price of a data request",
        description:
          "No money is held. If you name a business, its own fields decide what is personal.",
        tags: ["kyb"],
        body: Type.Object(
          {
            ...fieldMembers,
            businessWalletAddress: Type.Optional(givenAddress("The business that you would ask")),
          },
          { additionalProperties: false },
        ),
        response: {
          200: Type.Object(
            {
              currency: currencyCode,
              totalCents: cents("The sum of the lines, which is the most a release can cost"),
              lines: Type.Array(priceLine, {
                description: "In the order of `fields`, then `optionalFields`.",
              }),
            },
            {
              title: "Quote",
              description: "One line for each field, however many persons it covers.",
            },
          ),
          ...refusals(
            ...kybBodyReasons,
            ...callerReasons,
            "pii_not_entitled",
            "field_not_priced",
            "business_not_found",
            "unknown_field",
            "idempotency_key_conflict",
          ),
        },
      },
    },
    async (request, reply) => {
      const requester = apiKeyOf(request);
      const asked = readAskedFields(request.body);
      const { businessWalletAddress: text } = request.body;
      const business = text === undefined ? null : readAddress("businessWalletAddress", text);
      return idempotently(ctx, { request, reply }, async (tx) => {
        const lines = linesOf(await quoteFields(tx, { requester, business, asked }));
        return { status: 200, body: { currency, totalCents: totalOf(lines), lines } };
      });
    },
  );
}

const CreateBody = Type.Object(
  { businessWalletAddress: givenAddress("The business to ask"), ...dataMembers },
  { additionalProperties: false },
);

function createRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    path,
    {
      preValidation: gatePersonalFields,
      schema: {
        operationId: "createDataRequest",
        summary: "Ask a business for data",
        description:
          "The maximum price is held. The members of the business are asked at once and have 24 hours to answer.",
        tags: ["kyb"],
        body: CreateBody,
        response: {
          200: requestRecord,
          201: requestRecord,
          ...refusals(
            ...kybBodyReasons,
            ...callerReasons,
            "pii_not_entitled",
            "requester_blocked",
            "field_not_priced",
            "business_not_found",
            "idempotency_key_conflict",
            "no_webhook_endpoint",
            "request_already_open",
            "unknown_field",
            "business_not_verified",
            "field_not_available",
            "no_credit_account",
            "insufficient_credit",
          ),
        },
      },
    },
    async (request, reply) => {
      const requester = apiKeyOf(request);
      const terms = readTerms(request.body);
      const business = readAddress("businessWalletAddress", request.body.businessWalletAddress);
      const asked = { ...terms, business };
      return idempotently(ctx, { request, reply }, async (tx) => {
        const made = await requestData(ctx, tx, { requester, request: asked });
        return { status: 201, body: recordOf(made) };
      });
    },
  );
}

import { Type } from "../platform/http/schema.ts";
import { universalLinkOf } from "@svc/protocol";
import { apiKeyOf, requireApiKey } from "../accounts/index.ts";
import type { Http } from "../platform/http/http.ts";
import { qrPng } from "../platform/qr/qr-png.ts";
import { envelope, envelopeBody } from "../platform/http/envelope.ts";
import { bodyReasons, keyReasons, refusals } from "../platform/http/refusals.ts";
import { orderWebhooks } from "./event-schemas.ts";
import { expirationTime, keyMember, keyText, orderStatus, statusOf } from "./order-schema.ts";
import type { KycContext } from "./kyc-context.ts";
import { cancelOrder, requestOrder } from "./orders.ts";
import { readRoutes } from "./read-routes.ts";

/** Orders, for merchants (service document, KYC; decisions section 5). */
export async function kycRoutes(ctx: KycContext, http: Http): Promise<void> {
  http.webhooks.push(...orderWebhooks);
  await http.register(async (scope: Http) => {
    requireApiKey(ctx, scope);
    qrcodeRoute(ctx, scope);
    cancelRoute(ctx, scope);
    readRoutes(ctx, scope);
  });
}

const namesOf = (description: string) =>
  Type.Array(Type.String({ maxLength: 200 }), { description });

/** Unknown members are ignored; `statusCallback` and `withoutQRCode` are accepted without effect. */
const requestBody = Type.Object({
  user: Type.String({ maxLength: 100, description: "The user identity, with or without `0x`." }),
  sourceKey: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "The source key of the package that pays for the order.",
  }),
  callback: Type.String({
    maxLength: 2048,
    description: "The public HTTPS URL that receives every webhook of this order.",
  }),
  expiration: Type.Number({
    description: "Until when the user may approve: whole Unix seconds, 5 to 15 minutes ahead.",
  }),
  fields: Type.Optional(
    namesOf(
      "Names from `fields.json` that the user must share; none for a package with fixed fields.",
    ),
  ),
  optionalFields: Type.Optional(
    namesOf("Names that the user may share or withhold; none for a package with fixed fields."),
  ),
  reference: Type.Optional(
    Type.String({ description: "Your own reference, at most 280 characters; returned as given." }),
  ),
  purpose: Type.Optional(Type.String({ description: "Shown to the user, 1 to 280 characters." })),
  returnUrl: Type.Optional(
    Type.String({
      description:
        "Where the user continues on the same phone: an https URL under the client domain, at most 2000 characters, without user name or password.",
    }),
  ),
  statusCallback: Type.Optional(Type.Unknown({ description: "Accepted for compatibility." })),
  withoutQRCode: Type.Optional(Type.Unknown({ description: "Accepted for compatibility." })),
});

const requestedData = Type.Object(
  {
    qrcode: Type.String({ description: "The QR code, as a PNG in Base64." }),
    link: Type.String({ description: "The link for a button on the phone." }),
    universalLink: Type.String({ description: "The same link for phones without the app." }),
    expiration: expirationTime,
    referenceKey: keyText,
    alreadySent: Type.Optional(
      Type.Literal(true, {
        description:
          "True if the order was waiting already, and only the QR code is new; else absent.",
      }),
    ),
  },
  { title: "RequestedOrder" },
);

const requestReasons = [
  "source_key_not_found",
  "expiration_out_of_range",
  "dynamic_fields_unsupported",
  "invalid_fields",
  "no_fields",
  "order_ongoing",
  "unverified_fields",
  "package_exhausted",
] as const;

function qrcodeRoute(ctx: KycContext, scope: Http): void {
  scope.post(
    "/api/v2/kyc/qrcode",
    {
      schema: {
        operationId: "requestFields",
        summary: "Ask a user to share verified fields",
        description:
          "Repeating the same request while the order waits returns a new QR code for the same order, with `alreadySent`.",
        tags: ["kyc"],
        body: requestBody,
        response: {
          200: envelopeBody(requestedData, "The order is waiting for its user."),
          ...refusals(...bodyReasons, ...keyReasons, ...requestReasons),
        },
      },
    },
    async (request) => {
      const { order, link, isRepeat } = await requestOrder(ctx, apiKeyOf(request), request.body);
      return envelope(
        {
          qrcode: qrPng(link).toString("base64"),
          link,
          universalLink: universalLinkOf(ctx.config.walletOrigin, link),
          expiration: order.expiration,
          referenceKey: order.referenceKey,
          ...(isRepeat ? { alreadySent: true as const } : {}),
        },
        "QRCode has been successfully generated",
      );
    },
  );
}

function cancelRoute(ctx: KycContext, scope: Http): void {
  scope.post(
    "/api/v2/kyc/cancel",
    {
      schema: {
        operationId: "cancelOrder",
        summary: "Cancel an order that is waiting",
        tags: ["kyc"],
        body: Type.Object(keyMember),
        response: {
          200: envelopeBody(
            orderStatus,
            "The order has ended, and its transfer is available again.",
          ),
          ...refusals(...bodyReasons, ...keyReasons, "order_not_found", "order_not_cancellable"),
        },
      },
    },
    async (request) => {
      const order = await cancelOrder(ctx, apiKeyOf(request), request.body.referenceKey);
      return envelope(statusOf(order), "order has been cancelled successfully");
    },
  );
}

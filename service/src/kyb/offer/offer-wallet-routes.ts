import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { Problem } from "../../platform/http/problems.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { bodyReasons, refusals } from "../../platform/http/refusals.ts";
import type { WalletCaller } from "../../platform/http/wallet-caller.ts";
import type { KybContext } from "../kyb-context.ts";
import { givenAddress, seconds } from "../member-schemas.ts";
import { claimOffer, openOffer } from "./offers.ts";

const tags = ["wallet"];
const TokenParams = Type.Object({
  token: Type.String({ description: "The last part of `conn` in the offer's link." }),
});
const offerReasons = ["offer_not_found", "offer_not_open"] as const;

/** The routes behind `conn` of an offer's link. */
export function offerWalletRoutes(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  openRoute(ctx, scope);
  claimRoute(ctx, scope, getWalletUser);
  scope.post(
    "/w/f/:token",
    {
      schema: {
        params: TokenParams,
        body: Type.Object({}, { additionalProperties: true }),
        response: refusals(...bodyReasons, "unsupported"),
        tags,
        operationId: "refuseOffer",
        summary: "Refuse anything but a claim of an offer",
      },
    },
    () => {
      throw new Problem("unsupported");
    },
  );
}

function openRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    "/w/f/:token/open",
    {
      schema: {
        params: TokenParams,
        body: Type.Object({}),
        response: {
          200: {
            description: "The signed request object, which says who offers what.",
            content: { "application/jwt": { schema: Type.String() } },
          },
          ...refusals(...bodyReasons, ...offerReasons),
        },
        tags,
        operationId: "openOffer",
        summary: "Open an offer",
      },
    },
    async (request, reply) => {
      const object = await openOffer(ctx, request.params.token);
      return reply.type("application/jwt").send(object);
    },
  );
}

const ClaimBody = Type.Object(
  {
    svcID: givenAddress("The identity of the session"),
    business: givenAddress(
      "The business that takes the offer, whose voting member the identity is",
    ),
  },
  { additionalProperties: false },
);

function claimRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/f/:token/claim",
    {
      schema: {
        params: TokenParams,
        body: ClaimBody,
        response: {
          200: Type.Object(
            {
              offerId: Type.String({ description: "The id of the claimed offer." }),
              requestId: Type.String({
                description: "The id of the request, and of its vote in the inbox.",
              }),
              expiresAt: seconds("Until when the members may vote"),
            },
            {
              description:
                "The request has begun; the members of the business find it in their inbox.",
            },
          ),
          ...refusals(
            ...bodyReasons,
            ...offerReasons,
            "wallet_session_required",
            "not_a_member",
            "requester_blocked",
            "business_not_found",
            "no_webhook_endpoint",
            "request_already_open",
            "document_refused",
            "business_not_verified",
            "field_not_available",
            "pii_not_entitled",
            "kyb_not_entitled",
            "kyb_signature_not_entitled",
            "no_credit_account",
            "insufficient_credit",
            "rate_limited",
          ),
        },
        tags,
        operationId: "claimOffer",
        summary: "Claim an offer for a business",
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const svcID = readAddress("svcID", request.body.svcID);
      const business = readAddress("business", request.body.business);
      // The holder of a session may speak only for itself.
      if (svcID !== member) throw new Problem("not_a_member");
      return claimOffer(ctx, { token: request.params.token, member, business });
    },
  );
}

import assert from "node:assert/strict";
import { Type } from "../platform/http/schema.ts";
import { resultLengthMax } from "@svc/protocol";
import type { FastifyRequest } from "fastify";
import { callerAddressOf, limitNetworkOf } from "../platform/http/client-address.ts";
import type { Http } from "../platform/http/http.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import { perMinute } from "../platform/rate-limit.ts";
import { parseUuid } from "../platform/ids.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../platform/http/list-page.ts";
import { bodyReasons, refusals } from "../platform/http/refusals.ts";
import type { WalletCaller } from "../platform/http/wallet-caller.ts";
import { answerOrder, getLink, openOrder } from "./consent.ts";
import type { OrderLink } from "./consent-store.ts";
import type { KycContext } from "./kyc-context.ts";
import * as store from "./order-store.ts";
import { receiptWalletRoute } from "./receipt-routes.ts";
import { attemptNumber, keyText, orderStatus, statusOf } from "./order-schema.ts";

const tags = ["wallet"];
const TokenParams = Type.Object({
  token: Type.String({
    minLength: 1,
    maxLength: 100,
    description: "The secret of the link, the last part of its `conn`.",
  }),
});
/** What a body holds beside `infos`: mostly a contract's signature, at most 32 KiB in hex. */
const answerEnvelopeBytes = 40 * 1024;
const answerBytesMax = resultLengthMax + answerEnvelopeBytes;
const requestReasons = ["request_not_found", "request_over"] as const;

/** The routes behind `conn` of an order's link, and the wallet's own history. */
export function kycWalletRoutes(ctx: KycContext, scope: Http, getWalletUser: WalletCaller): void {
  openRoute(ctx, scope);
  answerRoute(ctx, scope);
  historyRoute(ctx, scope, getWalletUser);
  receiptWalletRoute(ctx, scope, getWalletUser);
}

function openRoute(ctx: KycContext, scope: Http): void {
  scope.post(
    "/w/o/:token/open",
    {
      schema: {
        params: TokenParams,
        body: Type.Object({}),
        response: {
          200: {
            description: "The signed request object, which says who asks for what.",
            content: { "application/jwt": { schema: Type.String() } },
          },
          ...refusals(...bodyReasons, ...requestReasons),
        },
        tags,
        operationId: "openOrder",
        summary: "Open a data request",
      },
    },
    async (request, reply) => {
      const object = await openOrder(ctx, request.params.token);
      return reply.type("application/jwt").send(object);
    },
  );
}

/** A result with its signature, or a refusal with `error`; `parseResult` of the protocol reads the members. */
function answerRoute(ctx: KycContext, scope: Http): void {
  const links = new WeakMap<FastifyRequest, OrderLink>();
  scope.post(
    "/w/o/:token",
    {
      bodyLimit: answerBytesMax,
      // Before the body is read: large ones take memory and block the event loop, so only valid links may send them.
      onRequest: async (request) => {
        await limitAnswers(ctx, request);
        links.set(request, await getLink(ctx, request.params.token));
      },
      schema: {
        params: TokenParams,
        body: Type.Object({}, { additionalProperties: true }),
        response: {
          200: Type.Object(
            {
              status: Type.Union([Type.Literal("INITIATING"), Type.Literal("FAILED")], {
                description: "`INITIATING` after an approval, `FAILED` after a refusal.",
              }),
              referenceKey: keyText,
              returnUrl: Type.Optional(
                Type.String({
                  description:
                    "Where the browser continues if it is on the same phone; absent if the merchant named nothing.",
                }),
              ),
            },
            { description: "The order is decided." },
          ),
          ...refusals(
            ...bodyReasons,
            ...requestReasons,
            "result_refused",
            "rate_limited",
            "chain_unavailable",
          ),
        },
        tags,
        operationId: "answerOrder",
        summary: "Approve or decline a data request",
        description:
          "The body is an approval (`svcID`, `id`, `infos`, `signature`) or a refusal (`error`, `id`, `svcID`, `signature`).",
      },
    },
    async (request) => {
      const { token } = request.params;
      const link = links.get(request);
      assert(link !== undefined, "onRequest found it");
      const callerAddress = callerAddressOf(ctx, request);
      return answerOrder(ctx, link, { token, body: request.body, callerAddress });
    },
  );
}

/** The same limit as for starting logins. @throws {Problem} rate_limited */
async function limitAnswers(ctx: KycContext, request: FastifyRequest): Promise<void> {
  const address = callerAddressOf(ctx, request);
  const limit = perMinute(ctx.config.loginsPerAddressMinute, address);
  await takeOrRefuse(ctx, `wallet:answer:${limitNetworkOf(address)}`, limit);
}

const ownOrder = Type.Object(
  {
    referenceKey: keyText,
    organization: Type.String({ description: "The name of the organization that asks." }),
    domain: Type.String({ description: "The host of its client domain." }),
    attempt: attemptNumber,
    fields: Type.Array(Type.String(), {
      description: "All names that were asked for, the optional ones last.",
    }),
    purpose: Type.Optional(
      Type.String({
        description: "Why the merchant asks, in its words; absent if it says nothing.",
      }),
    ),
    ...orderStatus.properties,
  },
  { title: "UserOrder" },
);

function historyRoute(ctx: KycContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.get(
    "/w/orders",
    {
      schema: {
        querystring: Type.Object(pageParameters),
        response: {
          200: pageBody(ownOrder, { description: "Newest first, without values." }),
          ...refusals("invalid_request", "wallet_session_required"),
        },
        tags,
        operationId: "listUserOrders",
        summary: "List the orders of this identity",
      },
    },
    async (request) => {
      const user = await getWalletUser(request.headers.authorization);
      const { limit, before } = readPage(request.query, parseUuid);
      const rows = await store.listOrdersOf(ctx.db, user, { before, limit: limit + 1 });
      return pageOf(rows, limit, (order) => ({
        referenceKey: order.referenceKey,
        organization: order.organizationName,
        domain: order.domain,
        attempt: order.attempt,
        fields: [...order.required, ...order.optional],
        ...(order.purpose === null ? {} : { purpose: order.purpose }),
        ...statusOf(order),
      }));
    },
  );
}

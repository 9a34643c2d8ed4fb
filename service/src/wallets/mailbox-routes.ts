import { Type } from "../platform/http/schema.ts";
import { base64url } from "../platform/http/text-form.ts";
import type { Address } from "@svc/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Ctx } from "../platform/context.ts";
import type { Http } from "../platform/http/http.ts";
import { bodyReasons, refusals } from "../platform/http/refusals.ts";
import { leaveBox, takeBox } from "./mailbox.ts";
import { relayAnswer } from "./relay.ts";
import { limitWallet } from "./wallet-limits.ts";
import { getWalletUser } from "./wallet-sessions.ts";

const tags = ["wallet"];
const admitted = new WeakMap<FastifyRequest, Address>();

/**
 * Checks the session and counts the call before the body has arrived: a large body costs memory, and parsing it blocks
 * the process.
 */
function admitFirst(ctx: Ctx, kind: "mailbox" | "relay") {
  return async (request: FastifyRequest): Promise<void> => {
    admitted.set(request, await getWalletUser(ctx, request.headers.authorization));
    await limitWallet(ctx, request, kind);
  };
}

/** The user who calls a route behind {@link admitFirst}. */
function userOf(request: FastifyRequest): Address {
  const user = admitted.get(request);
  if (user === undefined) throw new Error("the route is not behind admitFirst");
  return user;
}

const boxLengthMax = 256 * 1024;
/** The size of the box, plus the little JSON around it. */
const boxBodyBytesMax = boxLengthMax + 1024;
/** Wallet results are at most 8 MiB (decisions section 1); `url` and quotes come on top. */
const relayBodyBytesMax = 8 * 1024 * 1024 + 8192;

const BoxBody = Type.Object({
  box: base64url({
    minLength: 1,
    maxLength: boxLengthMax,
    description: "The box, sealed by the wallet, in base64url.",
  }),
  expiresAt: Type.Integer({
    minimum: 0,
    maximum: 4_294_967_295,
    description: "Unix seconds, at most an hour ahead.",
  }),
});

const MadeBody = Type.Object(
  {
    id: Type.String({ description: "Anyone who knows it may take the box." }),
    expiresAt: Type.Integer({ description: "Unix seconds." }),
    pickUpUrl: Type.String({ description: "The page that a pick-up link opens." }),
  },
  { description: "The box waits to be picked up." },
);

/** Older wallets, which know of no readers, send nothing. */
const ReaderBody = Type.Union([
  Type.Object({
    reader: Type.Optional(
      base64url({
        minLength: 22,
        maxLength: 64,
        description:
          "At least 128 random bits. A repeat of the call with the same value within a minute gets the box again.",
      }),
    ),
  }),
  Type.Null(),
]);

const BoxParams = Type.Object({
  id: Type.String({
    pattern: "^[A-Za-z0-9_-]{32}$",
    description: "The id that the wallet got when it left the box, and put into the link.",
  }),
});

/** One wallet leaves a sealed box; anyone who has its link can take it, once. */
export function mailboxRoutes(ctx: Ctx, scope: Http): void {
  scope.post(
    "/w/mailbox",
    {
      bodyLimit: boxBodyBytesMax,
      onRequest: admitFirst(ctx, "mailbox"),
      schema: {
        body: BoxBody,
        response: {
          201: MadeBody,
          ...refusals(...bodyReasons, "wallet_session_required", "too_many", "rate_limited"),
        },
        tags,
        operationId: "leaveBox",
        summary: "Leave a sealed box behind a link",
      },
    },
    async (request, reply) => {
      const made = await leaveBox(ctx, userOf(request), request.body);
      return (reply as FastifyReply).code(201).send(made);
    },
  );
  scope.post(
    "/w/mailbox/:id/take",
    {
      schema: {
        params: BoxParams,
        body: ReaderBody,
        response: {
          200: Type.Object(
            { box: Type.String({ description: "As it was left: sealed, in base64url." }) },
            { description: "The box; nobody else can take it any more." },
          ),
          ...refusals(...bodyReasons, "mailbox_empty", "rate_limited"),
        },
        tags,
        operationId: "takeBox",
        summary: "Take a sealed box, once",
      },
    },
    async (request) => {
      await limitWallet(ctx, request, "mailbox");
      return takeBox(ctx, { id: request.params.id, reader: request.body?.reader });
    },
  );
}

const RelayBody = Type.Object({
  url: Type.String({ minLength: 1, maxLength: 4096, description: "The `conn` of a link." }),
  body: Type.Record(Type.String(), Type.Unknown(), {
    description: "The answer, exactly as it is to be sent.",
  }),
});

/** The relay by which wallets in a browser reach the `conn` of somebody else. */
export function relayRoutes(ctx: Ctx, scope: Http): void {
  scope.post(
    "/w/relay",
    {
      bodyLimit: relayBodyBytesMax,
      onRequest: admitFirst(ctx, "relay"),
      schema: {
        body: RelayBody,
        response: {
          200: Type.Object(
            {
              status: Type.Integer({ description: "HTTP status of the other side." }),
              text: Type.Optional(
                Type.String({ description: "What the other side answered, up to 64 KiB." }),
              ),
            },
            { description: "The other side answered; a redirect counts as an answer." },
          ),
          ...refusals(...bodyReasons, "wallet_session_required", "not_delivered", "rate_limited"),
        },
        tags,
        operationId: "relayAnswer",
        summary: "Send a wallet's answer to a `conn` that a web page may not call",
      },
    },
    async (request) => relayAnswer(ctx, userOf(request), request.body),
  );
}

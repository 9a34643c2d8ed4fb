import { Type } from "../platform/http/schema.ts";
import { uuid } from "../platform/http/text-form.ts";
import { type Address, signatureCharactersMax } from "@svc/protocol";
import type { FastifyReply } from "fastify";
import { callerAddressOf } from "../platform/http/client-address.ts";
import type { Ctx } from "../platform/context.ts";
import type { Http } from "../platform/http/http.ts";
import { networkOfCaller } from "../platform/http/large-answers.ts";
import { pageBody, pageParameters, readLimit } from "../platform/http/list-page.ts";
import { Problem } from "../platform/http/problems.ts";
import { bodyReasons, refusals } from "../platform/http/refusals.ts";
import { mailboxRoutes, relayRoutes } from "./mailbox-routes.ts";
import { pushRoutes } from "./push-routes.ts";
import { limitWallet } from "./wallet-limits.ts";
import {
  closeWalletSession,
  getWalletUser,
  makeChallenge,
  openWalletSession,
  type VerifySignature,
} from "./wallet-sessions.ts";

/** One login as its user sees it. */
interface WalletLogin {
  readonly id: string;
  readonly clientName: string;
  readonly domain?: string;
  /** Unix seconds. */
  readonly at: number;
  readonly acr: string;
}

/** The functions of higher slices that this one calls; passed by `compose.ts`. */
export interface WalletDeps {
  /** Refuses a business, which acts through its members. @throws {Problem} rate_limited, chain_unavailable */
  readonly verifySession: VerifySignature;
  listLogins(
    user: Address,
    page: { limit: number; cursor?: string },
  ): Promise<{ items: WalletLogin[]; nextCursor?: string }>;
  /** False if this user has no such login. */
  endLogin(user: Address, id: string): Promise<boolean>;
  /** Adds routes of other slices for wallets; they get the same CORS rule. */
  addRoutes(scope: Http): void;
}

const SessionBody = Type.Object({
  svcID: Type.String({
    minLength: 1,
    maxLength: 100,
    description: "The identity that signed, 20 bytes in hex.",
  }),
  challenge: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "The challenge, as it was given.",
  }),
  deadline: Type.Integer({
    minimum: 0,
    maximum: 4_294_967_295,
    description: "The deadline that came with the challenge, Unix seconds.",
  }),
  signature: Type.String({
    minLength: 1,
    maxLength: signatureCharactersMax,
    description: "For a contract wallet: whatever the contract accepts (ERC-1271, ERC-6492).",
  }),
});

const ChallengeBody = Type.Object(
  {
    challenge: Type.String({ description: "What the wallet signs as `challenge`." }),
    deadline: Type.Integer({ description: "Unix seconds." }),
    origin: Type.String({ description: "What the wallet signs as `origin`." }),
  },
  { description: "The challenge, valid for one session until the deadline." },
);

const TokenBody = Type.Object(
  {
    token: Type.String({ description: "To be sent as `Authorization: Bearer`." }),
    expiresAt: Type.Integer({ description: "Unix seconds." }),
  },
  { description: "The session." },
);

const PageQuery = Type.Object(pageParameters);

const LoginsBody = pageBody(
  Type.Object(
    {
      id: Type.String({ description: "Names the login when it is to end; a UUID." }),
      clientName: Type.String({ description: "The name of the client where the user logged in." }),
      domain: Type.Optional(Type.String({ description: "Only while the domain is verified." })),
      at: Type.Integer({ description: "Unix seconds." }),
      acr: Type.String({
        description: "How near the wallet was, as in `acr_values`; empty if that was not recorded.",
      }),
    },
    { title: "Login" },
  ),
  { description: "Newest first." },
);

const LoginParams = Type.Object({
  id: uuid({ description: "The id of the login, as the list gives it." }),
});

/** Everything below `/w/` that wallets call; a web wallet may call it from its own origin (decisions section 2, CORS). */
export async function walletRoutes(ctx: Ctx, http: Http, deps: WalletDeps): Promise<void> {
  await http.register(async (scope: Http) => {
    allowWalletOrigin(ctx, scope);
    sessionRoutes(ctx, scope, deps);
    loginRoutes(ctx, scope, deps);
    mailboxRoutes(ctx, scope);
    relayRoutes(ctx, scope);
    pushRoutes(ctx, scope);
    deps.addRoutes(scope);
  });
}

function allowWalletOrigin(ctx: Ctx, scope: Http): void {
  scope.addHook("onRequest", (request, reply, done) => {
    void reply.header("vary", "origin");
    if (request.headers.origin === ctx.config.walletOrigin)
      void reply.headers({
        "access-control-allow-origin": ctx.config.walletOrigin,
        "access-control-expose-headers": "Retry-After, X-Request-Id",
      });
    done();
  });
  scope.options("/w/*", { schema: { hide: true } }, (_request, reply) =>
    reply
      .code(204)
      .headers({
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "600",
      })
      .send(),
  );
}

function sessionRoutes(ctx: Ctx, scope: Http, deps: WalletDeps): void {
  const tags = ["wallet"];
  scope.post(
    "/w/session/challenge",
    {
      schema: {
        response: { 200: ChallengeBody, ...refusals(...bodyReasons) },
        tags,
        operationId: "createSessionChallenge",
        summary: "Get a challenge for a wallet session",
      },
    },
    () => makeChallenge(ctx),
  );
  scope.post(
    "/w/session",
    {
      schema: {
        body: SessionBody,
        response: {
          200: TokenBody,
          ...refusals(
            ...bodyReasons,
            "challenge_wrong",
            "signature_wrong",
            "rate_limited",
            "chain_unavailable",
          ),
        },
        tags,
        operationId: "openSession",
        summary: "Open a wallet session with a signed Session message",
      },
    },
    async (request) => {
      await limitWallet(ctx, request, "address");
      const signed = { ...request.body, callerAddress: callerAddressOf(ctx, request) };
      return openWalletSession(ctx, signed, deps.verifySession);
    },
  );
  scope.delete(
    "/w/session",
    {
      schema: {
        response: {
          204: Type.Null({ description: "The session has ended, or did not exist." }),
          ...refusals(...bodyReasons),
        },
        tags,
        security: [{ walletSession: [] }],
        operationId: "endSession",
        summary: "End the wallet session",
      },
    },
    async (request, reply) => {
      await closeWalletSession(ctx, request.headers.authorization);
      return (reply as FastifyReply).code(204).send();
    },
  );
}

function loginRoutes(ctx: Ctx, scope: Http, deps: WalletDeps): void {
  scope.get(
    "/w/logins",
    {
      config: { costlyAnswerOf: networkOfCaller(ctx) },
      schema: {
        querystring: PageQuery,
        response: {
          200: LoginsBody,
          ...refusals("invalid_request", "wallet_session_required", "rate_limited"),
        },
        tags: ["wallet"],
        operationId: "listLogins",
        summary: "List the live logins of this identity",
      },
    },
    async (request) => {
      const user = await getWalletUser(ctx, request.headers.authorization);
      const { cursor } = request.query;
      return deps.listLogins(user, {
        limit: readLimit(request.query),
        ...(cursor === undefined ? {} : { cursor }),
      });
    },
  );
  scope.post(
    "/w/logins/:id/end",
    {
      schema: {
        params: LoginParams,
        response: {
          200: Type.Object(
            {
              status: Type.Literal("ended", {
                description: "The login from now on; to end it again changes nothing.",
              }),
            },
            { description: "The login has ended." },
          ),
          ...refusals(...bodyReasons, "wallet_session_required", "login_not_found"),
        },
        tags: ["wallet"],
        operationId: "endLogin",
        summary: "End a login: its session and its tokens, with back-channel logout",
      },
    },
    async (request) => {
      const user = await getWalletUser(ctx, request.headers.authorization);
      if (!(await deps.endLogin(user, request.params.id))) throw new Problem("login_not_found");
      return { status: "ended" as const };
    },
  );
}

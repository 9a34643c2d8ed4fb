import { parseUuid } from "../platform/ids.ts";
import { Bytes32, FieldText, Type } from "../platform/http/schema.ts";
import { sixDigits, uuid } from "../platform/http/text-form.ts";
import type { FastifyReply } from "fastify";
import { callerAddressOf } from "../platform/http/client-address.ts";
import type { Http } from "../platform/http/http.ts";
import { networkOfCaller } from "../platform/http/large-answers.ts";
import { pickLocale } from "../platform/http/pick-locale.ts";
import { pageBody, pageParameters, readPage } from "../platform/http/list-page.ts";
import { bodyReasons, refusals } from "../platform/http/refusals.ts";
import type { WalletCaller } from "../platform/http/wallet-caller.ts";
import { collectCredential, listOwnCredentials } from "./collection.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { finishVerification, startVerification } from "./email.ts";
import { withdrawCredential } from "./ending.ts";

const tags = ["wallet"];

/** The routes of wallets below `/w/`: collect and withdraw credentials, verify an e-mail address. */
export function credentialWalletRoutes(
  ctx: CredentialsContext,
  scope: Http,
  getWalletUser: WalletCaller,
): void {
  listRoute(ctx, scope, getWalletUser);
  credentialRoutes(ctx, scope, getWalletUser);
  emailRoutes(ctx, scope, getWalletUser);
}

const PageQuery = Type.Object(pageParameters);

const credentialItem = Type.Object(
  {
    id: Type.String({ description: "The id of the credential; a UUID." }),
    environment: Type.Union([Type.Literal("live"), Type.Literal("sandbox")], {
      description: "Fields of the sandbox are only for trying things out.",
    }),
    issuer: Type.Object(
      {
        id: Type.String({ description: "The issuer's address in the registry on chain." }),
        name: Type.String({ description: "The issuer's name, for people." }),
      },
      { description: "Who vouches for the fields." },
    ),
    document: Type.String({
      description:
        "The kind of document that the issuer verified; `CONTACT` for an e-mail address.",
    }),
    status: Type.String({
      description:
        "`pending` until its attestation is final, then `live`; `expired`, `revoked`, `withdrawn`, `lapsed`, `distrusted`.",
    }),
    issuedAt: Type.Integer({ description: "Unix seconds." }),
    root: Bytes32,
    collected: Type.Boolean({
      description: "Whether a wallet has stored the values; then they are no longer listed.",
    }),
    fields: Type.Array(
      Type.Object({
        field: FieldText,
        expiresAt: Type.Integer({ description: "Unix seconds." }),
        data: Type.Optional(Type.String({ description: "Until the wallet has collected it." })),
        pepper: Type.Optional(Bytes32),
        proof: Type.Optional(
          Type.Array(Bytes32, { description: "The siblings from the leaf to the root." }),
        ),
      }),
      {
        description:
          "The fields of the credential; with value, pepper and proof until a wallet has collected them.",
      },
    ),
  },
  { title: "UserCredential" },
);

function listRoute(ctx: CredentialsContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.get(
    "/w/credentials",
    {
      config: { largeAnswerOf: networkOfCaller(ctx) },
      schema: {
        querystring: PageQuery,
        response: {
          200: pageBody(credentialItem, {
            description: "Newest first; a page ends early if values are large.",
          }),
          ...refusals("invalid_request", "wallet_session_required", "rate_limited"),
        },
        tags,
        operationId: "listCredentials",
        summary: "List the credentials of this identity, with values until they are collected",
      },
    },
    async (request) => {
      const user = await getWalletUser(request.headers.authorization);
      const page = readPage(request.query, parseUuid);
      return listOwnCredentials(ctx, user, page);
    },
  );
}

const credentialParams = Type.Object({
  id: uuid({ description: "The id of the credential, as the list gives it." }),
});

function credentialRoutes(ctx: CredentialsContext, scope: Http, getWalletUser: WalletCaller): void {
  const reasons = [...bodyReasons, "wallet_session_required", "credential_not_found"] as const;
  scope.post(
    "/w/credentials/:id/collected",
    {
      schema: {
        params: credentialParams,
        response: {
          204: Type.Null({ description: "The service has deleted the values." }),
          ...refusals(...reasons),
        },
        tags,
        operationId: "confirmCollection",
        summary: "Confirm that the wallet has stored the values",
      },
    },
    async (request, reply) => {
      const user = await getWalletUser(request.headers.authorization);
      await collectCredential(ctx, user, request.params.id);
      return (reply as FastifyReply).code(204).send();
    },
  );
  scope.post(
    "/w/credentials/:id/withdraw",
    {
      schema: {
        params: credentialParams,
        response: {
          200: Type.Object(
            {
              status: Type.Literal("withdrawn", {
                description: "How the credential ended, for good.",
              }),
            },
            { description: "The credential has ended." },
          ),
          ...refusals(...reasons),
        },
        tags,
        operationId: "withdrawCredential",
        summary: "Withdraw one of your own credentials, permanently",
      },
    },
    async (request) => {
      const user = await getWalletUser(request.headers.authorization);
      await withdrawCredential(ctx, user, request.params.id);
      return { status: "withdrawn" as const };
    },
  );
}

const emailBody = Type.Object({
  email: Type.String({
    minLength: 3,
    maxLength: 254,
    description: "The address to verify, where the code is sent.",
  }),
  environment: Type.Optional(
    Type.Union([Type.Literal("live"), Type.Literal("sandbox")], {
      description: "The environment in which the field counts. Default: live.",
    }),
  ),
});

const startedBody = Type.Object(
  {
    verificationId: Type.String({
      description: "Names the verification when the code is entered.",
    }),
    expiresAt: Type.Integer({ description: "Unix seconds." }),
  },
  { description: "A code is on its way." },
);

const verificationParams = Type.Object({
  id: uuid({ description: "The `verificationId` with which the code was sent." }),
});

function emailRoutes(ctx: CredentialsContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/emails",
    {
      schema: {
        body: emailBody,
        response: {
          202: startedBody,
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "issuer_distrusted",
            "rate_limited",
            "unsupported",
          ),
        },
        tags,
        operationId: "sendEmailCode",
        summary: "Send a code to an e-mail address",
        description:
          "The message is in English, German, French, Italian or Spanish, whichever `Accept-Language` prefers, or in English if it names none of them.",
      },
    },
    async (request, reply) => {
      const user = await getWalletUser(request.headers.authorization);
      const { email, environment = "live" } = request.body;
      const started = await startVerification(ctx, user, {
        email,
        environment,
        clientAddress: callerAddressOf(ctx, request),
        locale: pickLocale(undefined, request.headers["accept-language"]),
      });
      return reply.code(202).send(started);
    },
  );
  scope.post(
    "/w/emails/:id",
    {
      schema: {
        params: verificationParams,
        body: Type.Object({ code: sixDigits({ description: "The code in the message." }) }),
        response: {
          200: Type.Object(
            { credentialId: Type.String({ description: "The credential that holds it; a UUID." }) },
            { description: "The field `EMAIL` is issued; it counts once it is final on chain." },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "issuer_distrusted",
            "verification_not_found",
            "verification_over",
            "code_wrong",
          ),
        },
        tags,
        operationId: "verifyEmail",
        summary: "Verify an e-mail address with the code",
      },
    },
    async (request) => {
      const user = await getWalletUser(request.headers.authorization);
      const { id: verificationId } = request.params;
      return finishVerification(ctx, user, { verificationId, code: request.body.code });
    },
  );
}

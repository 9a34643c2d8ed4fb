import { parseUuid } from "../platform/ids.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { Bytes32, FieldText, IdParams, Type, UserText } from "../platform/http/schema.ts";
import { idempotencyKey } from "../platform/http/text-form.ts";
import type { FastifyRequest } from "fastify";
import { limitOfKey, refuseKeyInUrl } from "../accounts/index.ts";
import { callerAddressOf } from "../platform/http/client-address.ts";
import type { Http } from "../platform/http/http.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../platform/http/list-page.ts";
import { Problem } from "../platform/http/problems.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import { bodyReasons, keyReasons, refusals } from "../platform/http/refusals.ts";
import { companyRoutes, readCredentialId } from "./company-routes.ts";
import { statusOfCredential } from "./credential.ts";
import * as store from "./credential-store.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { revokeCredential } from "./ending.ts";
import { documents } from "./field-value.ts";
import { issueCredential } from "./issue.ts";
import type { Caller } from "./issuer-key-lookup.ts";

/** Documents include their images, as Base64. */
const issueBytesMax = 8 * 1024 * 1024;

const tags = ["issuer"];

const callers = new WeakMap<FastifyRequest, Caller>();

/**
 * The API of issuers, behind their own kind of key. Answers have no envelope: 201 for a creation, 200 for a repeated
 * call.
 */
export async function issuerRoutes(ctx: CredentialsContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    scope.addHook("onRequest", async (request) => {
      refuseKeyInUrl(request.url);
      const caller = await ctx.issuerKeys.authenticate(request.headers.authorization);
      callers.set(request, caller);
      await limitCaller(ctx, caller, request);
    });
    issueRoute(ctx, scope);
    listRoute(ctx, scope);
    recordRoutes(ctx, scope);
    companyRoutes(ctx, scope, (request) => callerOf(request).issuer);
  });
}

async function limitCaller(
  ctx: CredentialsContext,
  { keyId }: Caller,
  request: FastifyRequest,
): Promise<void> {
  const isRead = request.method === "GET";
  const perSecond = isRead ? ctx.config.readsPerSecond : ctx.config.createsPerSecond;
  const limit = limitOfKey(perSecond, callerAddressOf(ctx, request));
  await takeOrRefuse(ctx, `issuer:${isRead ? "read" : "create"}:${keyId}`, limit);
}

function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request);
  if (caller === undefined) throw new Error("the route is not behind an issuer's key");
  return caller;
}

const credentialMembers = {
  id: Type.String({ format: "uuid", description: "The id of the credential." }),
  user: UserText,
  document: Type.String({ description: "The kind of the document, as it was given." }),
  status: Type.String({
    description:
      "`pending` until its attestation is final, then `live`; `expired`, `revoked`, `withdrawn` by its user, `lapsed` when nobody collected it in 30 days, `distrusted` with its issuer.",
  }),
  root: Bytes32,
  issuedAt: Type.Integer({ description: "Unix seconds." }),
  expiresAt: Type.Integer({ description: "Unix seconds." }),
  collected: Type.Boolean({
    description:
      "Whether the wallet has collected its values; then they are no longer stored here.",
  }),
  fields: Type.Array(
    Type.Object({
      field: FieldText,
      expiresAt: Type.Integer({ description: "Until when the field is valid, Unix seconds." }),
    }),
    { description: "The fields that were given, and those derived from them; without values." },
  ),
};
const credentialBody = (description: string) =>
  Type.Object(credentialMembers, { title: "Credential", description });

const issueBody = Type.Object({
  user: Type.String({ maxLength: 100, description: "The user whose document it is." }),
  document: Type.String({
    maxLength: 40,
    description: `One of ${documents.map((each) => `\`${each}\``).join(", ")}.`,
  }),
  fields: Type.Array(
    Type.Object({
      field: Type.String({ maxLength: 100, description: "A name from `fields.json`." }),
      data: Type.String({
        description: "The value in the catalogue's format; it is hashed exactly as given.",
      }),
    }),
    { minItems: 1, maxItems: 100, description: "What the document says, each field once." },
  ),
  expiresAt: Type.Integer({ description: "Unix seconds, at most 20 years ahead." }),
});

const issueHeaders = Type.Object({
  "idempotency-key": Type.Optional(
    idempotencyKey({
      description:
        "For a day, a repeat of the call with the same key and body gets the credential of the first call; once that has been deleted with its user, a new one is issued.",
    }),
  ),
});

function issueRoute(ctx: CredentialsContext, scope: Http): void {
  scope.post(
    "/api/v1/issuer/credentials",
    {
      bodyLimit: issueBytesMax,
      schema: {
        operationId: "issueCredential",
        summary: "Issue a credential for a verified document",
        description:
          "Each field must belong to the document or say how it was verified. The service computes and adds derived fields. Once the wallet has collected the values, the service keeps only hashes.",
        tags,
        headers: issueHeaders,
        body: issueBody,
        response: {
          201: credentialBody("Issued. It counts once its status is `live`."),
          200: credentialBody("Issued before, by a call with the same `Idempotency-Key`."),
          ...refusals(
            ...bodyReasons,
            ...keyReasons,
            "issuer_distrusted",
            "idempotency_key_conflict",
            // The user may be deleted between the issuance and the answer.
            "credential_not_found",
          ),
        },
      },
    },
    async (request, reply) => {
      const { issuer } = callerOf(request);
      const { user, document, fields, expiresAt } = request.body;
      const key = request.headers["idempotency-key"];
      const body = JSON.stringify([
        user,
        document,
        fields.map((f) => [f.field, f.data]),
        expiresAt,
      ]);
      const issued = await issueCredential(ctx, issuer, {
        user,
        document,
        fields,
        expiresAt,
        ...(key === undefined ? {} : { idempotency: { key, body } }),
      });
      const record = await readRecord(ctx, callerOf(request), issued.id);
      return reply.code(issued.isRepeated ? 200 : 201).send(record);
    },
  );
}

const listQuery = Type.Object({
  user: Type.Optional(
    Type.String({ maxLength: 100, description: "Only credentials of this user." }),
  ),
  ...pageParameters,
});

function listRoute(ctx: CredentialsContext, scope: Http): void {
  scope.get(
    "/api/v1/issuer/credentials",
    {
      schema: {
        operationId: "listIssuedCredentials",
        summary: "List the credentials that you issued",
        tags,
        querystring: listQuery,
        response: {
          200: pageBody(Type.Object(credentialMembers, { title: "Credential" }), {
            description: "Newest first.",
          }),
          ...refusals("invalid_request", ...keyReasons),
        },
      },
    },
    async (request) => {
      const { issuer } = callerOf(request);
      const { user: userText } = request.query;
      const user = userText === undefined ? null : readAddress("user", userText);
      const { limit, before } = readPage(request.query, parseUuid);
      const rows = await store.listIssued(ctx.db, issuer.id, { user, before, limit: limit + 1 });
      const page = pageOf(rows, limit, (row) => row);
      return { ...page, items: await toRecords(ctx, callerOf(request), page.items) };
    },
  );
}

function recordRoutes(ctx: CredentialsContext, scope: Http): void {
  scope.get(
    "/api/v1/issuer/credentials/:id",
    {
      schema: {
        operationId: "getIssuedCredential",
        summary: "Get a credential that you issued",
        tags,
        params: IdParams,
        response: {
          200: credentialBody("The credential, without values."),
          ...refusals(...keyReasons, "credential_not_found"),
        },
      },
    },
    async (request) => {
      return readRecord(ctx, callerOf(request), readCredentialId(request.params.id));
    },
  );
  scope.post(
    "/api/v1/issuer/credentials/:id/revoke",
    {
      schema: {
        operationId: "revokeCredential",
        summary: "Revoke a credential, immediately and permanently",
        description:
          "Revoking a credential that has ended changes nothing. The revocation on chain follows.",
        tags,
        params: IdParams,
        response: {
          200: credentialBody("The credential."),
          ...refusals(...bodyReasons, ...keyReasons, "credential_not_found"),
        },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const id = readCredentialId(request.params.id);
      await revokeCredential(ctx, caller.issuer, id);
      return readRecord(ctx, caller, id);
    },
  );
}

async function readRecord(ctx: CredentialsContext, caller: Caller, id: string) {
  const row = await store.findCredential(ctx.db, id);
  if (row?.issuerId !== caller.issuer.id) throw new Problem("credential_not_found");
  const [record] = await toRecords(ctx, caller, [row]);
  if (record === undefined) throw new Error("one row makes one record");
  return record;
}

async function toRecords(
  ctx: CredentialsContext,
  { issuer }: Caller,
  rows: readonly store.CredentialRow[],
) {
  const leaves = await store.listLeaves(
    ctx.db,
    rows.map(({ id }) => id),
  );
  const byCredential = Map.groupBy(leaves, ({ credentialId }) => credentialId);
  return rows.map((row) => ({
    id: row.id,
    user: row.user,
    document: row.document,
    status: statusOfCredential(row, issuer, ctx.clock.now()),
    root: row.root,
    issuedAt: row.createdAt,
    expiresAt: row.expiresAt,
    collected: row.collectedAt !== null,
    fields: (byCredential.get(row.id) ?? []).map(({ field, expiresAt }) => ({ field, expiresAt })),
  }));
}

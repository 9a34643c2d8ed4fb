import { parseUuid } from "../platform/ids.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { Bytes32, FieldText, IdParams, Type } from "../platform/http/schema.ts";
import { idempotencyKey } from "../platform/http/text-form.ts";
import { isBusinessField } from "@svc/protocol";
import type { FastifyRequest } from "fastify";
import type { Http } from "../platform/http/http.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../platform/http/list-page.ts";
import { Problem } from "../platform/http/problems.ts";
import { bodyReasons, keyReasons, refusals } from "../platform/http/refusals.ts";
import { revokeCompanyRecord } from "./company-ending.ts";
import { issueCompanyRecord } from "./company-issue.ts";
import { companyFieldsMax } from "./company-record.ts";
import * as company from "./company-store.ts";
import { statusOfCredential } from "./credential.ts";
import * as store from "./credential-store.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import type { Issuer } from "./issuer.ts";

/** Enough for {@link companyFieldsMax} fields, some of them lists. */
const issueBytesMax = 4 * 1024 * 1024;

const tags = ["issuer"];

const recordMembers = {
  id: Type.String({ format: "uuid", description: "The id of the record." }),
  business: Type.String({
    description: "The address of the business's wallet: 0x and 40 hex digits in lower case.",
  }),
  status: Type.String({
    description:
      "`pending` until its attestation is final, then `live`; `expired`, `revoked`, or `distrusted` with its issuer.",
  }),
  root: Bytes32,
  asOf: Type.Integer({ description: "When the issuer checked its sources, Unix seconds." }),
  issuedAt: Type.Integer({ description: "Unix seconds." }),
  expiresAt: Type.Integer({ description: "Unix seconds." }),
  fields: Type.Array(
    Type.Object({
      field: FieldText,
      subject: Type.Optional(
        Type.String({
          description: "The person that the field is about; absent for the business itself.",
        }),
      ),
    }),
    { description: "The fields of the record, without values." },
  ),
};
const recordBody = (description: string) =>
  Type.Object(recordMembers, { title: "CompanyRecord", description });

const issueBody = Type.Object({
  business: Type.String({ maxLength: 100, description: "The address of the business's wallet." }),
  fields: Type.Array(
    Type.Object({
      field: Type.String({ maxLength: 100, description: "The name of a field of businesses." }),
      subject: Type.Optional(
        Type.String({
          maxLength: 40,
          description:
            "The person that the field is about, such as `director-1`: an id of your own that names nobody. Leave it out for the business itself.",
        }),
      ),
      data: Type.String({
        description: "The value in the catalogue's format; it is hashed exactly as given.",
      }),
    }),
    {
      minItems: 1,
      maxItems: companyFieldsMax,
      description: "What you verified: each field once, and once for each person that it is about.",
    },
  ),
  asOf: Type.Optional(
    Type.Integer({ description: "When you checked your sources, Unix seconds. Default: now." }),
  ),
  expiresAt: Type.Integer({ description: "Unix seconds, at most 20 years ahead." }),
});

const issueHeaders = Type.Object({
  "idempotency-key": Type.Optional(
    idempotencyKey({
      description:
        "For a day, a repeat of the call with the same key and body gets the record of the first call.",
    }),
  ),
});

/** The issuer that makes a request. */
type IssuerOf = (request: FastifyRequest) => Issuer;

/** The routes for records of businesses, in the scope that is guarded by issuers' keys. */
export function companyRoutes(ctx: CredentialsContext, scope: Http, issuerOf: IssuerOf): void {
  issueRoute(ctx, scope, issuerOf);
  listRoute(ctx, scope, issuerOf);
  recordRoutes(ctx, scope, issuerOf);
}

function issueRoute(ctx: CredentialsContext, scope: Http, issuerOf: IssuerOf): void {
  scope.post(
    "/api/v1/issuer/companies",
    {
      bodyLimit: issueBytesMax,
      schema: {
        operationId: "issueCompanyRecord",
        summary: "Issue the record of a business",
        description:
          "The service keeps the values, sealed, and gives them to merchants to whom the members of the business release them. A field of this record replaces the same field of older records; revoke the record that this one replaces. A verified field marks the business as verified, unless the record itself says that the verification is unfinished or has ended.",
        tags,
        headers: issueHeaders,
        body: issueBody,
        response: {
          201: recordBody("Issued. It counts once its status is `live`."),
          200: recordBody("Issued before, by a call with the same `Idempotency-Key`."),
          ...refusals(
            ...bodyReasons,
            ...keyReasons,
            "business_not_found",
            "issuer_distrusted",
            "idempotency_key_conflict",
          ),
        },
      },
    },
    async (request, reply) => {
      const issuer = issuerOf(request);
      const key = request.headers["idempotency-key"];
      const { business, fields, asOf, expiresAt } = request.body;
      const content = fields.map(({ field, subject, data }) => [field, subject ?? "", data]);
      const body = JSON.stringify(["companies", business, content, asOf ?? null, expiresAt]);
      const issued = await issueCompanyRecord(ctx, issuer, {
        business,
        fields,
        ...(asOf === undefined ? {} : { asOf }),
        expiresAt,
        ...(key === undefined ? {} : { idempotency: { key, body } }),
      });
      void reply.code(issued.isRepeated ? 200 : 201);
      return readRecord(ctx, issuer, issued.id);
    },
  );
}

const listQuery = Type.Object({
  business: Type.Optional(
    Type.String({ maxLength: 100, description: "Only records of this business." }),
  ),
  ...pageParameters,
});

function listRoute(ctx: CredentialsContext, scope: Http, issuerOf: IssuerOf): void {
  scope.get(
    "/api/v1/issuer/companies",
    {
      schema: {
        operationId: "listCompanyRecords",
        summary: "List the records of businesses that you issued",
        tags,
        querystring: listQuery,
        response: {
          200: pageBody(Type.Object(recordMembers, { title: "CompanyRecord" }), {
            description: "Newest first, without values.",
          }),
          ...refusals("invalid_request", ...keyReasons),
        },
      },
    },
    async (request) => {
      const issuer = issuerOf(request);
      const { business: given } = request.query;
      const business = given === undefined ? null : readAddress("business", given);
      const { limit, before } = readPage(request.query, parseUuid);
      const rows = await company.listRecords(ctx.db, issuer.id, {
        business,
        before,
        limit: limit + 1,
      });
      const page = pageOf(rows, limit, (row) => row);
      return { ...page, items: await toRecords(ctx, issuer, page.items) };
    },
  );
}

function recordRoutes(ctx: CredentialsContext, scope: Http, issuerOf: IssuerOf): void {
  scope.get(
    "/api/v1/issuer/companies/:id",
    {
      schema: {
        operationId: "getCompanyRecord",
        summary: "Get a record of a business that you issued",
        tags,
        params: IdParams,
        response: {
          200: recordBody("The record, without values."),
          ...refusals(...keyReasons, "credential_not_found"),
        },
      },
    },
    async (request) => {
      return readRecord(ctx, issuerOf(request), readCredentialId(request.params.id));
    },
  );
  scope.post(
    "/api/v1/issuer/companies/:id/revoke",
    {
      schema: {
        operationId: "revokeCompanyRecord",
        summary: "Revoke the record of a business, immediately and permanently",
        description:
          "Revoking a record that has ended changes nothing. The revocation on chain follows. If no other record vouches for the business, it is no longer verified.",
        tags,
        params: IdParams,
        response: {
          200: recordBody("The record."),
          ...refusals(...bodyReasons, ...keyReasons, "credential_not_found"),
        },
      },
    },
    async (request) => {
      const issuer = issuerOf(request);
      const id = readCredentialId(request.params.id);
      await revokeCompanyRecord(ctx, issuer, id);
      return readRecord(ctx, issuer, id);
    },
  );
}

/** A text that is not a UUID names no credential and no record. @throws {Problem} credential_not_found */
export function readCredentialId(text: string): string {
  const id = parseUuid(text);
  if (id === null) throw new Problem("credential_not_found");
  return id;
}

async function readRecord(ctx: CredentialsContext, issuer: Issuer, id: string) {
  const found = await company.findRecord(ctx.db, issuer.id, id);
  const [record] = await toRecords(ctx, issuer, found === null ? [] : [found]);
  if (record === undefined) throw new Problem("credential_not_found");
  return record;
}

async function toRecords(
  ctx: CredentialsContext,
  issuer: Issuer,
  rows: readonly company.CompanyRecordRow[],
) {
  const ids = rows.map(({ id }) => id);
  const leaves = await store.listLeaves<string>(ctx.db, ids);
  const byRecord = Map.groupBy(leaves, ({ credentialId }) => credentialId);
  return rows.map((row) => ({
    id: row.id,
    business: row.business,
    status: statusOfCredential(row, issuer, ctx.clock.now()),
    root: row.root,
    asOf: row.asOf,
    issuedAt: row.createdAt,
    expiresAt: row.expiresAt,
    fields: (byRecord.get(row.id) ?? []).map(({ field }) => fieldOfLeaf(field)),
  }));
}

/** Name and subject of a leaf's field. */
function fieldOfLeaf(text: string): { field: string; subject?: string } {
  const [field = "", subject] = text.split("/");
  if (!isBusinessField(field))
    throw new Error("the record of a business has business fields alone");
  return subject === undefined ? { field } : { field, subject };
}

import { NoMembers, type TSchema, Type } from "../../platform/http/schema.ts";
import { type ApiKey, apiKeyOf } from "../../accounts/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import type { Http } from "../../platform/http/http.ts";
import { parseUlid } from "../../platform/ids.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../../platform/http/list-page.ts";
import type { Reason } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { expireAmong, expireBallotsOf } from "../ballot/ballots.ts";
import { kybBodyReasons } from "../entitlement.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import { RequestParams } from "../member-schemas.ts";
import { streamRoutes } from "../event/stream-routes.ts";

interface RequestRow {
  readonly id: string;
  readonly status: string;
  readonly expiresAt: number;
}

/** What the common routes need to know of data requests or of signature requests. */
export interface RequestKind<Row extends RequestRow> {
  /** Such as `/api/v1/kyb/data-requests`. */
  readonly path: string;
  /** The name in summaries: `data request`. */
  readonly name: string;
  /** The name of its records in generated clients: `DataRequest`. */
  readonly type: string;
  /** The refusals of its routes before they examine the request. */
  readonly reasons: readonly Reason[];
  readonly record: TSchema;
  /** The schema of its statuses. */
  readonly status: TSchema;
  readonly show: (row: Row) => object;
  readonly list: (
    key: ApiKey,
    page: { status: string | null; before: string | null; limit: number },
  ) => Promise<Row[]>;
  /** @throws {Problem} request_not_found */
  readonly get: (key: ApiKey, id: string) => Promise<Row>;
  /** @throws {Problem} request_not_found, request_not_open */
  readonly cancel: (tx: Queryable, of: { key: ApiKey; id: string }) => Promise<Row>;
}

/** Adds the routes that list, read and cancel requests, and those of their events. */
export function requestRoutes<Row extends RequestRow>(
  ctx: KybContext,
  scope: Http,
  kind: RequestKind<Row>,
): void {
  listRoute(ctx, scope, kind);
  readRoute(ctx, scope, kind);
  cancelRoute(ctx, scope, kind);
  const { path, type, reasons } = kind;
  const check = async (key: ApiKey, id: string): Promise<void> =>
    void (await readCurrent(ctx, kind, { key, id }));
  streamRoutes(ctx, scope, { path, type, reasons, check });
}

/**
 * Reads a request, after ending it if it has expired and no job has reached it yet: otherwise the merchant would see it
 * as open, or could cancel it.
 *
 * @throws {Problem} request_not_found
 */
async function readCurrent<Row extends RequestRow>(
  ctx: KybContext,
  { get }: RequestKind<Row>,
  { key, id }: { key: ApiKey; id: string },
): Promise<Row> {
  const row = await get(key, id);
  if (row.status !== "pending_approval" || row.expiresAt >= ctx.clock.now()) return row;
  await ctx.db.transaction(async (tx) => expireAmong(ctx, tx, [row.id]));
  return get(key, id);
}

/** The schema of the status by which a list is filtered. */
const onlyOf = (status: TSchema): TSchema => ({
  ...status,
  description: "Only requests that have this status. Default: all.",
});

function listRoute<Row extends RequestRow>(
  ctx: KybContext,
  scope: Http,
  kind: RequestKind<Row>,
): void {
  scope.get(
    kind.path,
    {
      schema: {
        operationId: `list${kind.type}s`,
        summary: `List the ${kind.name}s of this client domain`,
        tags: ["kyb"],
        querystring: Type.Object(
          {
            status: Type.Optional(onlyOf(kind.status)),
            ...pageParameters,
          },
          { additionalProperties: false },
        ),
        response: {
          200: pageBody(kind.record, { description: "Newest first." }),
          ...refusals("malformed_request", ...kind.reasons),
        },
      },
    },
    async (request) => {
      const { limit, before } = readPage(request.query, parseUlid);
      const status = (request.query.status as string | undefined) ?? null;
      const key = apiKeyOf(request);
      await expireBallotsOf(ctx, key.clientDomainId);
      const rows = await kind.list(key, { status, before, limit: limit + 1 });
      return pageOf(rows, limit, kind.show);
    },
  );
}

function readRoute<Row extends RequestRow>(
  ctx: KybContext,
  scope: Http,
  kind: RequestKind<Row>,
): void {
  scope.get(
    `${kind.path}/:id`,
    {
      schema: {
        operationId: `get${kind.type}`,
        summary: `Get a ${kind.name}`,
        tags: ["kyb"],
        params: RequestParams,
        response: { 200: kind.record, ...refusals(...kind.reasons, "request_not_found") },
      },
    },
    async (request) => {
      const of = { key: apiKeyOf(request), id: request.params.id };
      return kind.show(await readCurrent(ctx, kind, of));
    },
  );
}

function cancelRoute<Row extends RequestRow>(
  ctx: KybContext,
  scope: Http,
  kind: RequestKind<Row>,
): void {
  scope.post(
    `${kind.path}/:id/cancel`,
    {
      schema: {
        operationId: `cancel${kind.type}`,
        summary: `Cancel a ${kind.name} that waits for approval`,
        tags: ["kyb"],
        params: RequestParams,
        body: NoMembers,
        response: {
          200: kind.record,
          ...refusals(
            ...kybBodyReasons,
            ...kind.reasons,
            "request_not_found",
            "request_not_open",
            "idempotency_key_conflict",
          ),
        },
      },
    },
    async (request, reply) => {
      const of = { key: apiKeyOf(request), id: request.params.id };
      await readCurrent(ctx, kind, of);
      return idempotently(ctx, { request, reply }, async (tx) => ({
        status: 200,
        body: kind.show(await kind.cancel(tx, of)),
      }));
    },
  );
}

import { invalidRequest } from "../platform/problems.ts";

const limitDefault = 20;

/** Newest first, by ULID. @throws {Problem} invalid_request for a cursor that is none of ours */
export function readPage(query: { limit?: string; cursor?: string }): {
  limit: number;
  before: string | null;
} {
  const { limit = String(limitDefault), cursor } = query;
  if (cursor !== undefined && !/^[0-9A-HJKMNP-TV-Z]{26}$/.test(cursor))
    throw invalidRequest("cursor is not one of ours");
  return { limit: Number(limit), before: cursor ?? null };
}

/** A page of what was read with one row more than its limit. */
export function pageOf<Row extends { readonly id: string }, Item>(
  rows: readonly Row[],
  limit: number,
  show: (row: Row) => Item,
): { items: Item[]; nextCursor?: string } {
  const items = rows.slice(0, limit).map((row) => show(row));
  const last = rows[limit - 1];
  return rows.length > limit && last !== undefined ? { items, nextCursor: last.id } : { items };
}

import { invalidRequest } from "./problems.ts";
import { type TSchema, Type } from "./schema.ts";
import { pageSize } from "./text-form.ts";

/** Items of a page if the caller does not say how many. */
const limitDefault = 20;

/** The query parameters that select a page of a list. */
export const pageParameters = {
  limit: Type.Optional(
    pageSize({ description: `The page size, 1 to 100. Default: ${limitDefault}.` }),
  ),
  cursor: Type.Optional(
    Type.String({
      maxLength: 100,
      description: "To get the next page: the `nextCursor` of the current one.",
    }),
  ),
};

/** `limit` as {@link pageParameters} let it through. */
export function readLimit({ limit }: { limit?: string }): number {
  return limit === undefined ? limitDefault : Number(limit);
}

/**
 * Reads the query of a list whose newest come first, and whose cursor is the id of the last item shown.
 *
 * @param parseCursor the id that a text spells, or null
 * @throws {Problem} invalid_request for a cursor that is not ours
 */
export function readPage(
  query: { limit?: string; cursor?: string },
  parseCursor: (text: string) => string | null,
): { limit: number; before: string | null } {
  const limit = readLimit(query);
  if (query.cursor === undefined) return { limit, before: null };
  const before = parseCursor(query.cursor);
  if (before === null) throw invalidRequest("cursor is not one of ours");
  return { limit, before };
}

/** A page of rows that were read with one row more than the limit, which shows whether another page follows. */
export function pageOf<Row extends { readonly id: string }, Item>(
  rows: readonly Row[],
  limit: number,
  show: (row: Row) => Item,
): { items: Item[]; nextCursor?: string } {
  const items = rows.slice(0, limit).map((row) => show(row));
  const last = rows[limit - 1];
  return rows.length > limit && last !== undefined ? { items, nextCursor: last.id } : { items };
}

export const nextCursor = Type.Optional(
  Type.String({ description: "The `cursor` of the next page; absent on the last page." }),
);

/** The body of a page. */
export function pageBody<Item extends TSchema>(item: Item, options: { description?: string } = {}) {
  return Type.Object(
    {
      items: Type.Array(item, { description: "What is on this page; empty if there is nothing." }),
      nextCursor,
    },
    options,
  );
}

// Paging through the lists of one stream: its events, and the attempts at them.
import { invalidRequest } from "../platform/http/problems.ts";
import { wholeNumber } from "../platform/http/text-form.ts";
import { Type } from "../platform/http/schema.ts";

/** Where a page begins. */
export interface StreamPlace {
  /** The sequence after which it begins; 0 for the first page. */
  readonly after: number;
  /** In lists of attempts: the page begins after this attempt at the event `after`; by default it skips that event. */
  readonly afterAttempt?: number | null;
}

/** The query parameter `cursor` of such a list, an alternative to the parameters for {@link StreamPlace}. */
export const streamCursor = Type.Optional(
  Type.String({
    maxLength: 20,
    description:
      "To get the next page: the `nextCursor` of the current one. It takes precedence over the parameters that say where to begin.",
  }),
);

export const afterSequence = (description: string) => Type.Optional(wholeNumber({ description }));

/** The cursor of the page after an item: its sequence, and for an attempt its number too. */
export function cursorAfter(sequence: number, attempt?: number): string {
  return attempt === undefined ? String(sequence) : `${sequence}.${attempt}`;
}

/** A cursor takes precedence. @throws {Problem} invalid_request for a cursor that {@link cursorAfter} did not make */
export function readPlace(given: {
  cursor: string | undefined;
  after: string | undefined;
  afterAttempt?: string | undefined;
}): StreamPlace {
  const { cursor, after = "0", afterAttempt } = given;
  if (cursor === undefined)
    return {
      after: Number(after),
      afterAttempt: afterAttempt === undefined ? null : Number(afterAttempt),
    };
  const [, sequence, attempt] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(cursor) ?? [];
  if (sequence === undefined) throw invalidRequest("cursor is not one of ours");
  return { after: Number(sequence), afterAttempt: attempt === undefined ? null : Number(attempt) };
}

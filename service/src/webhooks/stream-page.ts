// Pages of the lists that tell of one stream: its events, and the attempts at them.
import { invalidRequest } from "../platform/http/problems.ts";
import { wholeNumber } from "../platform/http/text-form.ts";
import { Type } from "../platform/http/schema.ts";

/** Where a page begins. */
export interface StreamPlace {
  /** The sequence that it comes after; 0 begins. */
  readonly after: number;
  /** Of the event with that sequence: the attempt that it comes after; without it the event is left out as a whole. */
  readonly afterAttempt?: number | null;
}

/** How the query of such a list says it, beside the names that the API gives to {@link StreamPlace}. */
export const streamCursor = Type.Optional(
  Type.String({
    maxLength: 20,
    description: "`nextCursor` of the page before; goes before what else says where to begin.",
  }),
);

export const afterSequence = (description: string) => Type.Optional(wholeNumber({ description }));

/** The cursor of the page after an item: its sequence, and its number where it is an attempt. */
export function cursorAfter(sequence: number, attempt?: number): string {
  return attempt === undefined ? String(sequence) : `${sequence}.${attempt}`;
}

/** @throws {Problem} invalid_request for a cursor that is none of {@link cursorAfter} */
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

import { Problem } from "../platform/http/problems.ts";

/** Longer names are shortened when they are quoted, and half a character at the cut is replaced. */
const quotedMax = 64;

/**
 * Refuses names outside the catalogue in the document's words, each once; does nothing if there are none.
 *
 * @throws {Problem} invalid_fields
 */
export function refuseUnknownNames(unknown: readonly string[]): void {
  if (unknown.length === 0) return;
  const quoted = Array.from(new Set(unknown), (name) =>
    name === "" ? '""' : name.slice(0, quotedMax).toWellFormed(),
  );
  const message = `user fields (${quoted.join(", ")}) are invalid fields`;
  throw new Problem("invalid_fields", { message, details: { fields: quoted } });
}

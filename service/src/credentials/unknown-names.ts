import { Problem } from "../platform/http/problems.ts";

/** Longer names are cut in messages; `toWellFormed` replaces a surrogate that is halved by that. */
const quotedMax = 64;

/**
 * Refuses names outside the catalogue with the service document's message; does nothing if there are none.
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

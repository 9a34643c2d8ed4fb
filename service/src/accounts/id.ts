/** The canonical, lower-case form of a UUID, or null: anything else cannot be the id of a row and is not looked up. */
export function parseId(text: string): string | null {
  const lower = text.toLowerCase();
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(lower) ? lower : null;
}

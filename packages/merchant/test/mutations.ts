// Every value inside of an answer, changed one by one: for tests that nothing in it is left unchecked.

/** The path of every value that is no object. */
export function pathsOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, each]) => pathsOf(each, [...path, name]));
}

/** A copy in which `change` was applied to the value at the path. */
export function changedAt<T>(
  given: T,
  path: readonly string[],
  change: (value: unknown) => unknown,
): T {
  const copy = structuredClone(given) as Record<string, unknown>;
  let holder = copy;
  for (const name of path.slice(0, -1)) holder = holder[name] as Record<string, unknown>;
  const last = path.at(-1) ?? "";
  holder[last] = change(holder[last]);
  return copy as T;
}

/** Another value of the same kind, by one bit or so: in the first, the middle and the last place of a text. */
export const changes: readonly ((value: unknown) => unknown)[] = [0.15, 0.5, 1].map(
  (part) => (value: unknown) => {
    if (typeof value === "number") return value + 1;
    if (typeof value === "boolean") return !value;
    const text = String(value);
    const at = Math.max(Math.ceil(text.length * part) - 1, 0);
    const other = text[at] === "1" ? "2" : "1";
    return text.slice(0, at) + other + text.slice(at + 1);
  },
);

/** Other spellings of a JWT's signature, which a lenient decoder reads as the same bytes. */
export function otherSpellings(jwt: string): readonly string[] {
  const [last, before] = [jwt.slice(-1), jwt.slice(0, -1)];
  // If the last character encodes only two bits, its other four are spare; a length of 384 bytes leaves none.
  const next = String.fromCharCode(last.charCodeAt(0) + 1);
  const spelled = [next, ` ${last}`, `\n${last}`, `${last} `, `${last}==`];
  const isSame = (other: string): boolean => signatureOf(other).equals(signatureOf(jwt));
  return spelled.map((end) => `${before}${end}`).filter(isSame);
}

function signatureOf(jwt: string): Buffer {
  return Buffer.from(jwt.slice(jwt.lastIndexOf(".") + 1), "base64url");
}

const lengthMax = 254;
const localMax = 64;

/**
 * Reads an address of RFC 5321 in its everyday form (`Dot-string` at a public host name): no quotes, comments, literals
 * or non-ASCII characters, so that it cannot be read in two ways. The host is returned in lower case; null for anything
 * else.
 */
export function parseEmailAddress(text: string): string | null {
  const match =
    /^([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*)@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9]))$/.exec(
      text.length > lengthMax ? "" : text,
    );
  const [, local, host] = match ?? [];
  if (local === undefined || host === undefined || local.length > localMax) return null;
  return `${local}@${host.toLowerCase()}`;
}

/**
 * The same text for all spellings that most likely reach one mailbox; only for limits. Dots are ignored for every host,
 * because the largest mail host does so.
 */
export function mailboxOf(address: string): string {
  const at = address.lastIndexOf("@");
  const [local = ""] = address.slice(0, at).toLowerCase().split("+", 1);
  const host = address.slice(at + 1).toLowerCase();
  return `${local.replaceAll(".", "")}@${host === "googlemail.com" ? "gmail.com" : host}`;
}

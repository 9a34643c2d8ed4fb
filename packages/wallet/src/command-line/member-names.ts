import { parseAddress, shortAddress, type Address } from "@svc/protocol";
import type { NamedMember } from "../businesses.ts";
import { findIdentity, hasIdentity } from "../vault.ts";
import type { Home } from "./home.ts";
import { UsageError } from "./verb.ts";

/**
 * Whom a text names: `bob` of the vault or of the demo world, `bob=0x..`, or `0x..` alone.
 *
 * @param known members by name, asked first
 * @throws {UsageError}
 */
export async function findPerson(
  home: Home,
  text: string,
  known: readonly NamedMember[] = [],
): Promise<{ readonly name: string; readonly address: Address }> {
  const [name = "", given] = text.split("=", 2);
  if (given !== undefined) return { name: requireName(name), address: requireAddress(given, text) };
  const address = parseAddress(text);
  if (address !== null) {
    const member = known.find((each) => each.address === address);
    return { name: member?.name || shortAddress(address), address };
  }
  const named = known.filter((each) => each.name === text);
  const [only, second] = named;
  if (only !== undefined && second === undefined) return only;
  if (second !== undefined) throw new UsageError(`several members are called ${text}`);
  const isSealed = await hasIdentity(home.storage, text);
  const own = isSealed ? await findIdentity(home.storage, text) : home.demo?.identities.get(text);
  const found = own?.address;
  if (found === undefined)
    throw new UsageError(`nobody here is called ${text}: write ${text}=0x.. with the address`);
  return { name: text, address: requireAddress(found, text) };
}

function requireName(name: string): string {
  if (name === "") throw new UsageError("a member is named as <name> or <name>=0x..");
  return name;
}

function requireAddress(text: string, of: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new UsageError(`${of.slice(0, 100)} names no address`);
  return address;
}

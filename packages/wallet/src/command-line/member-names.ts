import { parseAddress, shortAddress, type Address } from "@svc/protocol";
import type { NamedMember } from "../businesses.ts";
import { findIdentity, hasIdentity } from "../vault.ts";
import type { Home } from "./home.ts";
import { UsageError } from "./verb.ts";

/**
 * Whom a text names: `bob` of the vault or of the demo world, `bob=0x..`, or `0x..` alone.
 *
 * @param known members by the names that the broker reports
 * @throws {UsageError} also if a member and somebody else whom this wallet knows both have the name
 */
export async function findPerson(
  home: Home,
  text: string,
  known: readonly NamedMember[] = [],
): Promise<{ readonly name: string; readonly address: Address }> {
  const [name = "", given] = text.split("=", 2);
  if (given !== undefined) return { name: requireName(name), address: requireAddress(given, text) };
  const written = parseAddress(text);
  if (written !== null) {
    const called = known.find((each) => each.address === written);
    return { name: called?.name || shortAddress(written), address: written };
  }
  const [member, second] = known.filter((each) => each.name === text);
  if (second !== undefined) throw new UsageError(`several members are called ${text}`);
  const isSealed = await hasIdentity(home.storage, text);
  const own = isSealed ? await findIdentity(home.storage, text) : home.demo?.identities.get(text);
  const found = own ? requireAddress(own.address, text) : undefined;
  // The members' names come from the broker, which could put somebody else in the place of a person whom this wallet
  // knows.
  if (member !== undefined && found !== undefined && member.address !== found)
    throw new UsageError(
      `the member ${text} is ${member.address}, but the ${text} of this wallet is ${found}: write the address`,
    );
  const address = member?.address ?? found;
  if (address === undefined)
    throw new UsageError(
      `this wallet knows nobody called ${text}: write ${text}=0x.. with the address`,
    );
  return { name: text, address };
}

function requireName(name: string): string {
  if (name === "") throw new UsageError("a member must be written as <name> or <name>=0x..");
  return name;
}

function requireAddress(text: string, of: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new UsageError(`${of.slice(0, 100)} has no valid address`);
  return address;
}

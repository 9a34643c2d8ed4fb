// What a person was shown of a link, so that an approval covers exactly that, and not something that has replaced it.
import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes, isRecord, type Link } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import { getRecord, linkKey, listReadable, putRecord } from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import type { Said } from "./request.ts";
import type { VerifiedObject } from "./requester.ts";
import type { Choice } from "./selection.ts";

/** A record without an end of its own is deleted after a day. */
const keptSeconds = 86_400;

/** What a broker says about a link in its request object, apart from the time at which it was signed. */
export function saidByObject(verified: VerifiedObject | null): Said {
  const { iat: _iat, ...terms } = verified?.object ?? {};
  return { terms: hashOf(terms) };
}

/**
 * The same for a request for fields, and what an approval of it would give, whichever credential the fields come from.
 */
export function saidOfFields(verified: VerifiedObject | null, choices: readonly Choice[]): Said {
  const given = choices.map(({ name, source }) => [name, source?.field, source?.data]);
  return { ...saidByObject(verified), given: hashOf(given) };
}

const hashOf = (value: object): string => hexOfBytes(sha256(bytesOfText(JSON.stringify(value))));

/** Remembers what is shown now, in place of what was shown before. */
export async function rememberSaid(
  ctx: WalletContext,
  link: Link,
  { said, expiresAt }: { said: Said; expiresAt: number | undefined },
): Promise<void> {
  const now = await ctx.now();
  const { feeWeiMax, ...compared } = said;
  const fee = feeWeiMax === undefined ? {} : { feeWeiMax: feeWeiMax.toString() };
  const until = expiresAt ?? now + keptSeconds;
  await putRecord(ctx, linkKey("shown", ctx.identity.address, link), {
    ...compared,
    ...fee,
    until,
  });
  // A record that cannot be read stays: what it was about is not approved until it is shown again.
  for (const { key, value } of await listReadable(ctx, "shown", () => undefined))
    if (isRecord(value) && typeof value["until"] === "number" && value["until"] < now)
      await ctx.storage.remove(key);
}

/**
 * Compares what is said now with what was said when the link was shown, if it was.
 *
 * @returns the highest fee that was shown
 * @throws {WalletRefusal} invalid_request if something else is said now, and if the record of what was shown cannot be
 *   read
 */
export async function checkSaid(
  ctx: WalletContext,
  link: Link,
  said: Said,
): Promise<{ feeWeiMax?: bigint }> {
  const key = linkKey("shown", ctx.identity.address, link);
  const shown = await getRecord(ctx, key).catch((cause: unknown) => {
    if (!(cause instanceof WalletRefusal)) throw cause;
    const fault = "what was shown cannot be read: look at the link again";
    throw new WalletRefusal("invalid_request", fault, { cause });
  });
  if (!isRecord(shown)) return {};
  // Earlier versions did not store what would be given.
  const { terms, given = said.given, feeWeiMax } = shown;
  if (terms !== said.terms || given !== said.given)
    throw new WalletRefusal("invalid_request", "it is not what was shown: look at the link again");
  return typeof feeWeiMax === "string" ? { feeWeiMax: BigInt(feeWeiMax) } : {};
}

/** Deletes what was shown of a link that has been answered: whatever it asks for next is a new question. */
export async function forgetSaid(ctx: WalletContext, link: Link): Promise<void> {
  await ctx.storage.remove(linkKey("shown", ctx.identity.address, link));
}

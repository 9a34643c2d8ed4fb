import { base64urlOfBytes, bytesOfBase64url, originOfConnection } from "@svc/protocol";
import { openText, sealText } from "./box.ts";
import type { WalletContext } from "./context.ts";
import { cipherOfKey } from "./passphrase-cipher.ts";
import { WalletRefusal } from "./refusal.ts";
import { callWithRetries } from "./retries.ts";
import { hashedKey, type StorageKey } from "./storage.ts";
import { membersOf, refusalOfAnswer } from "./transport.ts";

/** A link by which one reader picks a text up, once. */
export interface PickUp {
  readonly link: string;
  /** Unix seconds: after this it is gone. */
  readonly expiresAt: number;
}

/** What the sealed text is about, so that no other text of the wallet is accepted as a hand-over. */
const about = "svc-mailbox-v1";
const keyLength = 32;
/** The length of the secret by which a broker recognises a reader that asks again. */
const readerLength = 24;
/** The most that a mailbox holds; images are never handed over this way. */
const boxLengthMax = 256 * 1024;

/**
 * Leaves a text at a broker that cannot read it: it is sealed with a key that is only in the link's fragment, as is the
 * id of the mailbox (decisions, section 3, `p2p`). A fragment is sent to no server and to no link preview.
 *
 * @throws {WalletRefusal} unsupported without a broker, invalid_request for a text that is too long
 */
export async function leaveInMailbox(
  ctx: WalletContext,
  text: string,
  expiresAt: number,
): Promise<PickUp> {
  const [broker] = await ctx.brokers();
  if (broker === undefined)
    throw new WalletRefusal("unsupported", "this wallet knows no broker that could keep it");
  const key = ctx.random(keyLength);
  const box = await sealText(text, { cipher: await cipherOfKey(key), about }, ctx.random);
  if (box.length > boxLengthMax)
    throw new WalletRefusal("invalid_request", "it is too large to be picked up by a link");
  const path = "/w/mailbox";
  const answer = await ctx.sessions.call(broker, { path, body: { box, expiresAt } });
  const { id, pickUpUrl } = membersOf(answer.text);
  if (answer.status !== 201 || typeof id !== "string" || !/^[\w-]{22,64}$/.test(id))
    throw refusalOfAnswer(`${broker}${path}`, answer);
  const page = originOfConnection(typeof pickUpUrl === "string" ? pickUpUrl : broker);
  if (page === null) throw new WalletRefusal("broker_refused", `${broker} names no page to open`);
  const fragment = `${id}.${base64urlOfBytes(key)}.${encodeURIComponent(broker)}`;
  return { link: `${page}/p#${fragment}`, expiresAt };
}

/**
 * Picks up what somebody left, once: afterwards it is gone, except for the same reader, who may ask again if the answer
 * was lost. The mailbox is asked only if its broker is on the wallet's list, so that a link cannot make the wallet call
 * just anybody.
 *
 * @param options.keeps keeps the reader the same until `forgetPickUp`, for a caller that has yet to show the result
 * @throws {WalletRefusal} invalid_link, broker_refused (read before, or gone), unreachable
 */
export async function pickUp(
  ctx: WalletContext,
  link: string,
  { keeps }: { readonly keeps?: true } = {},
): Promise<Readonly<Record<string, unknown>>> {
  const { url, key } = await findBox(ctx, link);
  const body = { reader: await drawReader(ctx, url) };
  const answer = await callWithRetries(ctx, { url, body, bytesMax: 2 * boxLengthMax });
  const isKept = answer.status === 200 && keeps === true;
  if (answer.status < 500 && answer.status !== 429 && !isKept)
    await ctx.storage.remove(keyOfReader(ctx, url));
  if (answer.status !== 200) throw refusalOfAnswer(url, answer);
  const { box } = membersOf(answer.text);
  const text =
    typeof box === "string" ? await openText(box, { cipher: await cipherOfKey(key), about }) : null;
  const value = membersOf(text);
  if (Object.keys(value).length === 0)
    throw new WalletRefusal("invalid_link", "what was left does not open with this link");
  return value;
}

/** From now on another reader asks, who gets nothing. @throws {WalletRefusal} invalid_link */
export async function forgetPickUp(ctx: WalletContext, link: string): Promise<void> {
  const { url } = await findBox(ctx, link);
  await ctx.storage.remove(keyOfReader(ctx, url));
}

/** The secret of this reader, stored before it is sent: a call that was interrupted is repeated as the same reader. */
async function drawReader(ctx: WalletContext, url: string): Promise<string> {
  const fresh = base64urlOfBytes(ctx.random(readerLength));
  const made = JSON.stringify({ reader: fresh, madeAt: await ctx.now() });
  const { reader } = membersOf(await ctx.storage.add(keyOfReader(ctx, url), made));
  return typeof reader === "string" ? reader : fresh;
}

/** Stored among the claims of logins, which are deleted when they are a day old. */
const keyOfReader = ({ identity }: WalletContext, url: string): StorageKey =>
  hashedKey("claim", identity.address, url);

/** Where the box is, and the key that opens it. @throws {WalletRefusal} invalid_link */
async function findBox(
  ctx: WalletContext,
  link: string,
): Promise<{ url: string; key: Uint8Array }> {
  const [, id, keyText = "", brokerText = ""] =
    /^https?:\/\/[^#]*#([\w-]{22,64})\.([\w-]{43})\.([\w%.-]{1,300})$/.exec(link.trim()) ?? [];
  const key = bytesOfBase64url(keyText);
  const broker = URL.canParse(decoded(brokerText)) ? new URL(decoded(brokerText)).origin : null;
  if (id === undefined || key === null || broker === null)
    throw new WalletRefusal("invalid_link", "the text is not a pick-up link");
  if (!(await ctx.brokers()).includes(broker))
    throw new WalletRefusal("invalid_link", `${broker} is not a broker on this wallet's list`);
  return { url: `${broker}/w/mailbox/${id}/take`, key };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

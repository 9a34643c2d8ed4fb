import { linkInUniversal, parseLink, returnTypeOf, type Link } from "@svc/protocol";
import { accessAction } from "./actions/access.ts";
import { dataTransferAction } from "./actions/data-transfer.ts";
import { loginAction } from "./actions/login.ts";
import { isOffer, openOffer, type OfferLink } from "./actions/offer.ts";
import { shareAction } from "./actions/share.ts";
import { signAction, typedDataAction } from "./actions/signature.ts";
import { transactionAction } from "./actions/transaction.ts";
import type { WalletContext } from "./context.ts";
import { refuseLate } from "./decline.ts";
import { WalletRefusal } from "./refusal.ts";
import type { Declining, OpenRequest, SentRefusal } from "./request.ts";

/**
 * Reads a link that this wallet may open, or a universal link that contains one.
 *
 * @throws {WalletRefusal} invalid_link, other_identity, unsupported
 */
export function readLink(ctx: WalletContext, text: string): Link {
  const link = parseLink(linkInUniversal(text.trim()));
  if ("refused" in link) {
    const { parameter, reason } = link.refused;
    throw new WalletRefusal("invalid_link", `the link is refused: ${parameter ?? "it"} ${reason}`);
  }
  const { identity } = link;
  if (identity !== undefined && identity !== ctx.identity.address)
    throw new WalletRefusal("other_identity", `the link is for another identity, ${identity}`);
  if (returnTypeOf(link) === "nfc" && ctx.nfc === undefined)
    throw new WalletRefusal("unsupported", "this device has no NFC; ask for another way");
  return link;
}

/** Opens a request in force. @throws {WalletRefusal} */
export async function openRequest(ctx: WalletContext, link: Link): Promise<OpenRequest> {
  // A transaction that was signed in time is completed even later, so the action itself checks the deadline.
  if (link.action === "tx") return transactionAction.open(ctx, link);
  await refuseLate(ctx, link);
  if (isOfferAction(link) && (await isOffer(ctx, link))) return openOffer(ctx, link);
  switch (link.action) {
    case "login":
      return loginAction.open(ctx, link);
    case "td":
      return typedDataAction.open(ctx, link);
    case "sign":
      return signAction.open(ctx, link);
    case "request":
      return shareAction.open(ctx, link);
    case "access":
      return accessAction.open(ctx, link);
    case "data-transfer":
      break;
  }
  return dataTransferAction.open(ctx, link);
}

/** Whether a link has an action that offers can have; an offer always has a connection. */
function isOfferAction(link: Link): link is OfferLink {
  return (link.action === "request" || link.action === "sign") && link.connection !== undefined;
}

/** Makes the refusal by which a request is declined. @throws {WalletRefusal} */
export async function refuseRequest(
  ctx: WalletContext,
  link: Link,
  declining: Declining,
): Promise<SentRefusal> {
  if (isOfferAction(link) && (await isOffer(ctx, link)))
    throw new WalletRefusal("unsupported", "an offer that nobody takes ends by itself");
  switch (link.action) {
    case "login":
      return loginAction.refuse(ctx, link, declining);
    case "td":
      return typedDataAction.refuse(ctx, link, declining);
    case "sign":
      return signAction.refuse(ctx, link, declining);
    case "request":
      return shareAction.refuse(ctx, link, declining);
    case "access":
      return accessAction.refuse(ctx, link, declining);
    case "data-transfer":
      return dataTransferAction.refuse(ctx, link, declining);
    case "tx":
      break;
  }
  return transactionAction.refuse(ctx, link, declining);
}

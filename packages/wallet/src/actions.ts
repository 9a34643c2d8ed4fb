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
import type { ActionHandler, Declining, OpenRequest, SentRefusal } from "./request.ts";

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

/** Each action with the handler of its own links. */
type Handlers = {
  readonly [Action in Link["action"]]: ActionHandler<Extract<Link, { action: Action }>>;
};

const handlers: Handlers = {
  login: loginAction,
  td: typedDataAction,
  sign: signAction,
  request: shareAction,
  access: accessAction,
  "data-transfer": dataTransferAction,
  tx: transactionAction,
};

function handlerOf({ action }: Link): ActionHandler<Link> {
  return handlers[action];
}

/** Opens a request in force. @throws {WalletRefusal} */
export async function openRequest(ctx: WalletContext, link: Link): Promise<OpenRequest> {
  // A transaction that was signed in time is completed even later, so the action itself checks the deadline.
  if (link.action !== "tx") await refuseLate(ctx, link);
  if (isOfferAction(link) && (await isOffer(ctx, link))) return openOffer(ctx, link);
  return handlerOf(link).open(ctx, link);
}

/** Makes the refusal by which a request is declined. @throws {WalletRefusal} */
export async function refuseRequest(
  ctx: WalletContext,
  link: Link,
  declining: Declining,
): Promise<SentRefusal> {
  if (isOfferAction(link) && (await isOffer(ctx, link)))
    throw new WalletRefusal(
      "unsupported",
      "an offer cannot be declined: it ends by itself if nobody takes it",
    );
  return handlerOf(link).refuse(ctx, link, declining);
}

/** Whether a link has an action that offers can have; an offer always has a connection. */
function isOfferAction(link: Link): link is OfferLink {
  return (link.action === "request" || link.action === "sign") && link.connection !== undefined;
}

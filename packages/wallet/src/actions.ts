import { parseLink, returnTypeOf, type Link } from "@svc/protocol";
import { loginAction } from "./actions/login.ts";
import { signAction, typedDataAction } from "./actions/signature.ts";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import type { Declining, OpenRequest, SentRefusal } from "./request.ts";

/** Reads a link that this wallet may look at. @throws {WalletRefusal} invalid_link, other_identity, unsupported */
export function readLink(ctx: WalletContext, text: string): Link {
  const link = parseLink(text.trim());
  if ("refused" in link) {
    const { parameter, reason } = link.refused;
    throw new WalletRefusal("invalid_link", `the link is refused: ${parameter ?? "it"} ${reason}`);
  }
  const { identity } = link;
  if (identity !== undefined && identity !== ctx.identity.address)
    throw new WalletRefusal("other_identity", `the link is for another identity, ${identity}`);
  const returnType = returnTypeOf(link);
  if (returnType === "p2p" || returnType === "nfc")
    throw new WalletRefusal("unsupported", `this wallet cannot answer by ${returnType} yet`);
  return link;
}

/** Opens a request in force. @throws {WalletRefusal} */
export async function openRequest(ctx: WalletContext, link: Link): Promise<OpenRequest> {
  const deadline = "deadline" in link ? link.deadline : undefined;
  if (deadline !== undefined && (await ctx.now()) > deadline)
    throw new WalletRefusal("expired", "the deadline of the link has passed");
  switch (link.action) {
    case "login":
      return loginAction.open(ctx, link);
    case "td":
      return typedDataAction.open(ctx, link);
    case "sign":
      return signAction.open(ctx, link);
    case "request":
    case "access":
    case "data-transfer":
    case "tx":
      break;
  }
  throw unsupported(link);
}

/** Makes the refusal that turns a request down. @throws {WalletRefusal} */
export async function refuseRequest(
  ctx: WalletContext,
  link: Link,
  declining: Declining,
): Promise<SentRefusal> {
  switch (link.action) {
    case "login":
      return loginAction.refuse(ctx, link, declining);
    case "td":
      return typedDataAction.refuse(ctx, link, declining);
    case "sign":
      return signAction.refuse(ctx, link, declining);
    case "request":
    case "access":
    case "data-transfer":
    case "tx":
      break;
  }
  throw unsupported(link);
}

function unsupported({ action }: Link): WalletRefusal {
  return new WalletRefusal("unsupported", `this wallet cannot answer a ${action} yet`);
}

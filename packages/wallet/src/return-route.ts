import { returnTypeOf, type DataTransferLink, type Link } from "@svc/protocol";
import { hostOf } from "./transport.ts";

/** A link that says where its answer goes; a data transfer has no such place. */
type RoutedLink = Exclude<Link, DataTransferLink>;

/**
 * Where an answer goes: the host of `conn`, or the app that its scheme opens. Null if `conn` does not receive it,
 * because it is shown, left behind a link or handed over.
 */
export function destinationOf(link: RoutedLink): string | null {
  const returnType = returnTypeOf(link);
  const isSent = returnType === "callback" || returnType === "app-link";
  return isSent && link.connection !== undefined ? hostOf(link.connection) : null;
}

/** How the answer travels, as one sentence. @param what names the answer, in the singular */
export function sayRoute(what: string, link: RoutedLink): string {
  switch (returnTypeOf(link)) {
    case "callback":
      return `${what} goes to ${destinationOf(link) ?? ""}.`;
    case "app-link":
      return `${what} goes to ${destinationOf(link) ?? ""}, within an address that is opened.`;
    case "p2p":
      return `${what} is left behind a link by which one reader can pick it up, once.`;
    case "nfc":
      return `${what} is handed over by NFC.`;
    case "qr":
    case "text":
      break;
  }
  return `${what} is shown to you as a QR code, and sent to nobody.`;
}

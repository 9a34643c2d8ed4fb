import { parseSignature } from "@svc/protocol";
import { Problem } from "./problems.ts";

/**
 * The refusal of a signature. If no key's signature has its form, the message describes that form; a contract wallet's
 * may have any, so the form need not be the fault.
 */
export function signatureWrong(signature: string): Problem {
  return parseSignature(signature) === null
    ? new Problem("signature_wrong", {
        message:
          "this is no key's signature over this: that is 0x and 65 bytes r, s, v in hex, with s in the lower half and v 27 or 28",
      })
    : new Problem("signature_wrong");
}

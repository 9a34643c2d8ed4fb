import {
  bytesOfText,
  isHexOf,
  personalDigest,
  typedDataDigest,
  TypedDataFault,
  type Hex,
  type TypedDataDocument,
} from "@svc/protocol";

import { readAnchor } from "./attested-field.ts";
import { openChainView, type ChainNode } from "./chain-view.ts";
import { MerchantError, misconfigured } from "./merchant-error.ts";

/** The document, from your own records: its digest is recomputed and never taken from the service. */
export type SignedContent = { message: string } | { typedData: TypedDataDocument };

/** Which chain and contract to ask, from your own records. */
export type SignatureAnchors = ChainNode & {
  chainId: number;
  /** The business that signed: from its login, or from the release that you verified. */
  business: string;
  /** For all calls to the node together. Default 20,000. */
  timeoutMs?: number;
};

/** The length of a business's signature: `0x01` and the digest. */
const signatureBytes = 33;

/**
 * Verifies that a business signed a document (ERC-1271), by asking only a node of the chain, not the service. The
 * signature holds for years, whoever the members are then, until the business itself withdraws it.
 *
 * @param signature of the event, or of `kyb.signature`
 * @throws {MerchantError} signature_refused; chain_unreachable; configuration_invalid
 */
export async function verifyBusinessSignature(
  signature: string,
  content: SignedContent,
  anchors: SignatureAnchors,
): Promise<void> {
  const address = readAnchor("business", anchors.business);
  const digest = digestOf(content);
  if (!isHexOf(signature, signatureBytes) || !signature.startsWith("0x01"))
    throw refused("signature");
  const view = openChainView(anchors);
  if ((await view.chainId()) !== anchors.chainId) throw refused("chainId");
  const given = { address, digest, signature: signature.toLowerCase() as Hex };
  if (!(await view.isContractSignature(given))) throw refused("contract");
}

function digestOf(content: SignedContent): Uint8Array {
  if ("message" in content) {
    // Bytes or undefined would get the digest of another text, which nobody signed.
    if (typeof content.message !== "string") throw misconfigured("message");
    return personalDigest(bytesOfText(content.message));
  }
  try {
    return typedDataDigest(content.typedData);
  } catch (cause) {
    if (cause instanceof TypedDataFault) throw misconfigured("typedData");
    throw cause;
  }
}

function refused(reason: string): MerchantError {
  return new MerchantError("signature_refused", { reason });
}

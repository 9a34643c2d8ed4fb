import { decodeInfos as decode, type Info } from "@svc/protocol";

import { MerchantError } from "./merchant-error.ts";

/**
 * Decodes `data.infos` of a `data.transferred` webhook: the triples to store. `data` is the text, `pepper` is `0x` and
 * 64 hex digits. `verifyWebhook` has done this already.
 *
 * @throws {MerchantError} infos_invalid; its `reason` names the member
 */
export function decodeInfos(text: string): readonly Info[] {
  const infos = decode(text);
  if ("fault" in infos)
    throw new MerchantError("infos_invalid", { reason: infos.fault.member ?? "infos" });
  return infos;
}

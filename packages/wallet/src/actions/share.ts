import { encodeInfos, leavesHash, shareDigest, type RequestLink } from "@svc/protocol";
import { sayValue } from "../field-request.ts";
import type { ActionHandler } from "../request.ts";
import { leafOfSource, type Source } from "../selection.ts";
import { fieldAction } from "./field-action.ts";

/** `svc:request`: hand verified fields over, with a signed `Share` (decisions, section 3). */
export const shareAction: ActionHandler<RequestLink> = fieldAction({
  mustHold: false,
  verb: "share",
  what: "What you share",
  sayField: sayValue,
  showField: showSource,
  answer: async ({ identity }, released, message) => {
    const data = leavesHash(released.map((source) => leafOfSource(identity.address, source)));
    return {
      infos: encodeInfos(released),
      signature: await identity.sign(shareDigest({ ...message, data })),
    };
  },
});

function showSource({ field, data, expiresAt, credential }: Source): Record<string, unknown> {
  const { document, environment, issuer, status } = credential;
  return { field, value: data, document, environment, issuer: issuer.name, status, expiresAt };
}

import {
  encodeInfos,
  leavesHash,
  returnTypeOf,
  shareDigest,
  type RequestLink,
} from "@svc/protocol";
import {
  decideRelease,
  describeCommon,
  messageOf,
  openFieldRequest,
  refuseFields,
  sayChoices,
  sayIdentity,
  sayTerms,
  sayValue,
  traceOf,
} from "../field-request.ts";
import type { ActionHandler } from "../request.ts";
import { requesterOf, sayRequester } from "../requester.ts";
import { leafOfSource, type Source } from "../selection.ts";
import { saidOfFields } from "../shown-links.ts";
import { shownText } from "../shown-text.ts";

/** `svc:request`: hand verified fields over, with a signed `Share` (decisions, section 3). */
export const shareAction: ActionHandler<RequestLink> = {
  async open(ctx, link) {
    const opened = await openFieldRequest(ctx, link, { mustHold: false });
    const { verified, request, choices } = opened;
    const requester = requesterOf(link, verified);
    const common = describeCommon(ctx, opened);
    const fields = choices.flatMap(({ name, isOptional, source }) =>
      source === null ? [] : [{ name, optional: isOptional, ...shownSource(source) }],
    );
    return {
      description: {
        ...common,
        words: [
          `${sayRequester(requester)} asks you to share verified fields ${sayIdentity(ctx)}.`,
          ...sayTerms(opened, "What you share"),
          ...sayChoices(choices, sayValue),
        ].map(shownText),
        returnType: returnTypeOf(link),
        data: { ...common.data, fields },
      },
      said: saidOfFields(verified, choices),
      takes: { without: true },
      async answer(approval) {
        const released = decideRelease(choices, approval);
        const { address } = ctx.identity;
        const message = {
          ...messageOf(opened, released),
          data: leavesHash(released.map((source) => leafOfSource(address, source))),
        };
        return {
          svcID: address,
          ...(request === "" ? {} : { id: request }),
          infos: encodeInfos(released),
          signature: await ctx.identity.sign(shareDigest(message)),
        };
      },
      trace: (approval) => traceOf(opened, approval),
    };
  },

  refuse: async (ctx, link, declining) => refuseFields(ctx, link, { declining, mustHold: false }),
};

function shownSource({ field, data, expiresAt, credential }: Source): Record<string, unknown> {
  const { document, environment, issuer, status } = credential;
  return { field, value: data, document, environment, issuer: issuer.name, status, expiresAt };
}

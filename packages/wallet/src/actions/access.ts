import {
  accessDigest,
  commitmentOf,
  returnTypeOf,
  type AccessLink,
  type AccessProof,
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
  traceOf,
} from "../field-request.ts";
import type { ActionHandler } from "../request.ts";
import { requesterOf, sayRequester } from "../requester.ts";
import { isDerivedAnswer, type Source } from "../selection.ts";
import { saidOfFields } from "../shown-links.ts";
import { shownText } from "../shown-text.ts";

/** `svc:access`: prove that fields are verified. Values stay here, except for the "yes" of a derived field. */
export const accessAction: ActionHandler<AccessLink> = {
  async open(ctx, link) {
    const opened = await openFieldRequest(ctx, link, { mustHold: true });
    const { verified, request, choices } = opened;
    const requester = requesterOf(link, verified);
    const common = describeCommon(ctx, opened);
    const fields = choices.flatMap(({ name, isOptional, source }) =>
      source === null
        ? []
        : [
            {
              name,
              optional: isOptional,
              field: source.field,
              opened: isDerivedAnswer(source.field),
            },
          ],
    );
    return {
      description: {
        ...common,
        words: [
          `${sayRequester(requester)} asks you to prove verified fields ${sayIdentity(ctx)}.`,
          ...sayTerms(opened, "The proof"),
          ...sayChoices(choices, ({ field }) =>
            isDerivedAnswer(field)
              ? "that the answer is yes"
              : "that it is verified, without its value",
          ),
        ].map(shownText),
        returnType: returnTypeOf(link),
        data: { ...common.data, fields },
      },
      said: saidOfFields(verified, choices),
      takes: { without: true },
      async answer(approval) {
        const released = decideRelease(choices, approval);
        return {
          svcID: ctx.identity.address,
          ...(request === "" ? {} : { id: request }),
          proofs: released.map(proofOf),
          signature: await ctx.identity.sign(accessDigest(messageOf(opened, released))),
        };
      },
      trace: (approval) => traceOf(opened, approval),
    };
  },

  refuse: async (ctx, link, declining) => refuseFields(ctx, link, { declining, mustHold: true }),
};

function proofOf({ field, data, pepper, expiresAt, proof, credential }: Source): AccessProof {
  return {
    field,
    commitment: commitmentOf({ data, pepper }),
    expiresAt,
    root: credential.root,
    proof,
    ...(isDerivedAnswer(field) ? { opening: { data, pepper } } : {}),
  };
}

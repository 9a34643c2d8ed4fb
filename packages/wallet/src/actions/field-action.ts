import {
  returnTypeOf,
  type AccessLink,
  type AccessMessage,
  type RequestLink,
  type ResultOf,
} from "@svc/protocol";
import type { WalletContext } from "../context.ts";
import {
  decideRelease,
  describeCommon,
  type FieldRequest,
  messageOf,
  openFieldRequest,
  refuseFields,
  sayChoices,
  sayIdentity,
  sayTerms,
  traceOf,
} from "../field-request.ts";
import type { ActionHandler, Description } from "../request.ts";
import { sayRequester } from "../requester.ts";
import type { Source } from "../selection.ts";
import { saidOfFields } from "../shown-links.ts";
import { shownText } from "../shown-text.ts";

type Content<Result> = Omit<Result, "svcID" | "id">;

/** What differs between the actions that ask for fields. */
interface FieldAction {
  /** A yes/no field fits only with "yes". */
  readonly mustHold: boolean;
  /** What the person is asked to do with the fields. */
  readonly verb: string;
  /** What goes to the requester, as the beginning of a sentence. */
  readonly what: string;
  /** What goes of a field. */
  readonly sayField: (source: Source) => string;
  /** The same for programs. */
  readonly showField: (source: Source) => Record<string, unknown>;
  /** The signed answer that releases these fields. */
  readonly answer: (
    ctx: WalletContext,
    released: readonly Source[],
    message: AccessMessage,
  ) => Promise<Content<ResultOf["request"]> | Content<ResultOf["access"]>>;
}

/** Makes the handler of an action that asks for fields. */
export function fieldAction<L extends RequestLink | AccessLink>(
  action: FieldAction,
): ActionHandler<L> {
  return {
    async open(ctx, link) {
      const opened = await openFieldRequest(ctx, link, action);
      const { verified, request, choices } = opened;
      return {
        description: describe(ctx, opened, action),
        said: saidOfFields(verified, choices),
        takes: { without: true },
        async answer(approval) {
          const released = decideRelease(choices, approval);
          return {
            svcID: ctx.identity.address,
            ...(request === "" ? {} : { id: request }),
            ...(await action.answer(ctx, released, messageOf(opened, released))),
          };
        },
        trace: (approval) => traceOf(opened, approval),
      };
    },
    refuse: async (ctx, link, declining) =>
      refuseFields(ctx, link, { declining, mustHold: action.mustHold }),
  };
}

function describe(
  ctx: WalletContext,
  opened: FieldRequest<RequestLink | AccessLink>,
  { verb, what, sayField, showField }: FieldAction,
): Description {
  const { link, choices } = opened;
  const common = describeCommon(ctx, opened);
  const fields = choices.flatMap(({ name, isOptional, source }) =>
    source === null ? [] : [{ name, optional: isOptional, ...showField(source) }],
  );
  return {
    ...common,
    words: [
      `${sayRequester(common.requester)} asks you to ${verb} verified fields ${sayIdentity(ctx)}.`,
      ...sayTerms(opened, what),
      ...sayChoices(choices, sayField),
    ].map(shownText),
    returnType: returnTypeOf(link),
    data: { ...common.data, fields },
  };
}

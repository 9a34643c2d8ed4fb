import {
  announceMove,
  listBusinesses,
  reinstateBusiness,
  setBusinessVerified,
  showBusiness,
  suspendBusiness,
  withdrawMove,
} from "../kyb/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, UsageError, type Verb } from "./verb.ts";

const business = [
  { name: "business", description: "The address of the business's wallet." },
] as const;

export const businessVerbs: readonly Verb[] = [
  {
    name: "business list",
    summary: "List businesses in the order of their addresses, at most 100 at a time.",
    options: {
      status: {
        choices: ["inviting", "deploying", "active", "suspended", "moved", "lapsed"],
        description: "Only businesses with this status.",
      },
      environment: {
        choices: ["live", "sandbox"],
        description: "Only businesses of this environment.",
      },
      after: {
        value: "address",
        description:
          "Only businesses after this one; to get the next page, pass the `nextCursor` of the current one.",
      },
    },
    example: "business list --status active",
    run: inContext(async (ctx, input) =>
      listBusinesses(ctx, {
        status: input.optional("status"),
        environment: input.optional("environment"),
        cursor: input.optional("after"),
      }),
    ),
  },
  {
    name: "business show",
    summary:
      "Show a business with its members, its rules, and any removal or move that is under way.",
    notes:
      "`operatorWord` is what you declared with `business verify`: true or false, or null if the records of issuers decide.",
    parameters: business,
    example: `business show ${exampleIds.business}`,
    run: inContext(async (ctx, input) => showBusiness(ctx, input.text("business"))),
  },
  {
    name: "business verify",
    summary: "Vouch for a business, so that it may release fields and sign.",
    notes:
      "With --withdraw the business no longer may: its logins end, and requests to it fail with business_not_verified. Either declaration overrides the records of issuers, until --leave-to-issuers lets them decide again.",
    parameters: business,
    options: {
      withdraw: { description: "Declare that the business may not release or sign." },
      "leave-to-issuers": { description: "Take back your declaration, whichever it was." },
    },
    example: `business verify ${exampleIds.business}`,
    run: inContext(async (ctx, input) => {
      const [isWithdrawn, isLeft] = [input.flag("withdraw"), input.flag("leave-to-issuers")];
      if (isWithdrawn && isLeft)
        throw new UsageError("give either --withdraw or --leave-to-issuers, not both");
      const given = { address: input.text("business"), isVerified: isLeft ? null : !isWithdrawn };
      return setBusinessVerified(ctx, given, actor);
    }),
  },
  {
    name: "business suspend",
    summary: "Suspend a business: no requests can be made to it until it is reinstated.",
    notes:
      "The logins of the business end, and open requests to it fail with business_not_verified. What it has signed stays signed.",
    parameters: business,
    example: `business suspend ${exampleIds.business}`,
    run: inContext(async (ctx, input) => suspendBusiness(ctx, input.text("business"), actor)),
  },
  {
    name: "business reinstate",
    summary:
      "End the suspension of a business. Logins and requests that the suspension ended stay ended.",
    parameters: business,
    example: `business reinstate ${exampleIds.business}`,
    run: inContext(async (ctx, input) => reinstateBusiness(ctx, input.text("business"), actor)),
  },
  {
    name: "business move",
    summary: "Announce that a business continues in another wallet, newly founded by its members.",
    notes:
      "The move takes effect after 30 days, unless a member cancels it with a signature. It is meant for members who can no longer decide; others move their wallet themselves.",
    parameters: business,
    options: {
      to: { value: "address", description: "The address of the new wallet." },
      cancel: { description: "Cancel a move that was announced." },
    },
    example: `business move ${exampleIds.business} --to 0x1c0ffee254729296a45a3885639ac7e10f9d5497`,
    run: async (shell, input) =>
      shell.withContext<unknown>(async (ctx) => {
        const [address, successor] = [input.text("business"), input.optional("to")];
        if (input.flag("cancel") === (successor !== undefined))
          throw new UsageError("give either --to or --cancel");
        if (successor === undefined) return withdrawMove(ctx, address, actor);
        return announceMove(ctx, { address, successor }, actor);
      }),
  },
];

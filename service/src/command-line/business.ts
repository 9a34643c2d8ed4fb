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

const business = [{ name: "business", description: "The address of its wallet." }] as const;

export const businessVerbs: readonly Verb[] = [
  {
    name: "business list",
    summary: "List businesses by address, at most 100.",
    options: {
      status: {
        choices: ["inviting", "deploying", "active", "suspended", "moved", "lapsed"],
        description: "Only those.",
      },
      environment: { choices: ["live", "sandbox"], description: "Only businesses of that side." },
      after: {
        value: "address",
        description: "Only businesses after this one: `nextCursor` of the page before.",
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
    summary: "Show a business with its members, rules and what is under way.",
    notes:
      "`operatorWord` is what you have declared about its record: true or false, or null if issuers decide.",
    parameters: business,
    example: `business show ${exampleIds.business}`,
    run: inContext(async (ctx, input) => showBusiness(ctx, input.text("business"))),
  },
  {
    name: "business verify",
    summary: "Vouch for the record of a business, so that it may release and sign.",
    notes:
      "With --withdraw it no longer may: its logins end, and requests to it fail as business_not_verified. Both override the records of issuers; with --leave-to-issuers these decide again.",
    parameters: business,
    options: {
      withdraw: { description: "Declare that it may not." },
      "leave-to-issuers": { description: "Take your declaration back, either way." },
    },
    example: `business verify ${exampleIds.business}`,
    run: inContext(async (ctx, input) => {
      const [isWithdrawn, isLeft] = [input.flag("withdraw"), input.flag("leave-to-issuers")];
      if (isWithdrawn && isLeft) throw new UsageError("give --withdraw or --leave-to-issuers");
      const given = { address: input.text("business"), isVerified: isLeft ? null : !isWithdrawn };
      return setBusinessVerified(ctx, given, actor);
    }),
  },
  {
    name: "business suspend",
    summary: "Stop a business: no requests may be made to it until it is reinstated.",
    notes:
      "Its logins end, and requests to it fail as business_not_verified. What it signed stays.",
    parameters: business,
    example: `business suspend ${exampleIds.business}`,
    run: inContext(async (ctx, input) => suspendBusiness(ctx, input.text("business"), actor)),
  },
  {
    name: "business reinstate",
    summary: "End the suspension of a business; logins and requests that it ended stay ended.",
    parameters: business,
    example: `business reinstate ${exampleIds.business}`,
    run: inContext(async (ctx, input) => reinstateBusiness(ctx, input.text("business"), actor)),
  },
  {
    name: "business move",
    summary:
      "Announce that a business continues in another wallet, which its members have newly founded.",
    notes:
      "It takes effect after 30 days, unless a member cancels it with a signature. Members who can still decide move their wallet themselves. With --cancel an announced move is taken back.",
    parameters: business,
    options: {
      to: { value: "address", description: "The other business." },
      cancel: { description: "Take the move back." },
    },
    example: `business move ${exampleIds.business} --to 0x1c0ffee254729296a45a3885639ac7e10f9d5497`,
    run: async (shell, input) =>
      shell.withContext<unknown>(async (ctx) => {
        const [address, successor] = [input.text("business"), input.optional("to")];
        if (input.flag("cancel") === (successor !== undefined))
          throw new UsageError("give --to or --cancel");
        if (successor === undefined) return withdrawMove(ctx, address, actor);
        return announceMove(ctx, { address, successor }, actor);
      }),
  },
];

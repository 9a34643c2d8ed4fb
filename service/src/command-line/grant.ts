import { listEntitlements, setEntitlement } from "../accounts/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, type Input, type Option, type Verb } from "./verb.ts";

const parameters = [
  { name: "organization", description: "The organization's UUID." },
  { name: "entitlement", description: "`kyb:data-request`, `kyb:pii` or `kyb:signature`." },
];
const withdraw: Option = { description: "Withdraw the entitlement instead." };

export const grantVerbs: readonly Verb[] = [
  {
    name: "grant",
    summary: "Grant an organization an entitlement of the KYB API, or withdraw it.",
    notes:
      "Running processes apply the change within milliseconds, or within a minute if they miss the notification. Every organization has `kyb:read`.",
    parameters,
    options: { withdraw },
    example: `grant ${exampleIds.organization} kyb:data-request`,
    run: inContext(async (ctx, input) => ({
      organizationId: input.text("organization"),
      entitlements: await setEntitlement(ctx, changeOf(input), actor),
    })),
  },
  {
    name: "grant list",
    summary: "List the entitlements of an organization.",
    parameters: parameters.slice(0, 1),
    example: `grant list ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => listEntitlements(ctx, input.text("organization"))),
  },
];

function changeOf(input: Input): Parameters<typeof setEntitlement>[1] {
  return {
    organizationId: input.text("organization"),
    entitlement: input.text("entitlement"),
    isGranted: !input.flag("withdraw"),
  };
}

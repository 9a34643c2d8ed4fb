import { createApiKey, createManagementKey, listApiKeys, revokeApiKey } from "../accounts/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, keyIdOf, UsageError, type Verb } from "./verb.ts";

export const apiKeyVerbs: readonly Verb[] = [
  {
    name: "api-key create",
    summary: "Make an API key of a client domain, or a management key of an organization.",
    notes: "It is shown only this once.",
    isToldOnce: true,
    options: {
      domain: {
        value: "uuid",
        description: "The client domain for whose KYC and KYB calls it is.",
      },
      organization: {
        value: "uuid",
        description:
          "Instead of --domain: a management key of this organization. No route takes one yet.",
      },
      name: { value: "text", required: true, description: "What it is for." },
    },
    example: `api-key create --domain ${exampleIds.domain} --name backend`,
    run: inContext(async (ctx, input) => {
      const clientDomainId = input.optional("domain");
      const organizationId = input.optional("organization");
      const name = input.text("name");
      if (clientDomainId !== undefined && organizationId === undefined)
        return createApiKey(ctx, { clientDomainId, name }, actor);
      if (organizationId !== undefined && clientDomainId === undefined)
        return createManagementKey(ctx, { organizationId, name }, actor);
      throw new UsageError("give either --domain or --organization");
    }),
  },
  {
    name: "api-key list",
    summary: "List the live keys of an organization, with their last use.",
    options: { organization: { value: "uuid", required: true, description: "The organization." } },
    example: `api-key list --organization ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => listApiKeys(ctx, input.text("organization"))),
  },
  {
    name: "api-key revoke",
    summary: "Revoke a key at once.",
    parameters: [
      {
        name: "key",
        description: "Its id: the 12 characters after svc_live_, svc_test_ or svc_mgmt_.",
      },
    ],
    example: "api-key revoke 4kQz81LmXw0T",
    run: inContext(async (ctx, input) => {
      const id = keyIdOf(input);
      await revokeApiKey(ctx, id, actor);
      return { revoked: id };
    }),
  },
];

import { createApiKey, createManagementKey, listApiKeys, revokeApiKey } from "../accounts/index.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, inContext, keyIdOf, UsageError, type Verb } from "./verb.ts";

export const apiKeyVerbs: readonly Verb[] = [
  {
    name: "api-key create",
    summary: "Create an API key for a client domain, or a management key for an organization.",
    notes: "The key is shown only once.",
    isToldOnce: true,
    options: {
      domain: {
        value: "uuid",
        description: "The client domain whose KYC and KYB calls use the key.",
      },
      organization: {
        value: "uuid",
        description:
          "Instead of --domain: create a management key for this organization. No route accepts one yet.",
      },
      name: { value: "text", required: true, description: "A name that says what the key is for." },
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
    summary:
      "List the API and management keys of an organization that are not revoked, with the time of their last use.",
    options: {
      organization: { value: "uuid", required: true, description: "The organization's UUID." },
    },
    example: `api-key list --organization ${exampleIds.organization}`,
    run: inContext(async (ctx, input) => listApiKeys(ctx, input.text("organization"))),
  },
  {
    name: "api-key revoke",
    summary: "Revoke an API key or a management key immediately.",
    parameters: [
      {
        name: "key",
        description: "The key's id: the 12 characters after svc_live_, svc_test_ or svc_mgmt_.",
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

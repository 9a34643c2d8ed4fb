import type { Http } from "../platform/http/http.ts";
import { keyReasons, refusals } from "../platform/http/refusals.ts";
import { Type } from "../platform/http/schema.ts";
import { type AccountsContext, apiKeyOf, requireApiKey } from "./api-key-guard.ts";

const keyAnswer = Type.Object(
  {
    clientDomainId: Type.String({
      format: "uuid",
      description: "The client domain that the key acts for.",
    }),
    organizationId: Type.String({
      format: "uuid",
      description: "The organization that the client domain belongs to.",
    }),
    domain: Type.String({ description: "The host of the client domain." }),
    livemode: Type.Boolean({ description: "False for a sandbox key." }),
    verified: Type.Boolean({ description: "Whether the domain is verified at this moment." }),
  },
  { title: "KeyStanding", description: "The key is valid." },
);

/** Adds the routes of the accounts. */
export async function accountRoutes(ctx: AccountsContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireApiKey(ctx, scope);
    scope.get(
      "/api/v1/key",
      {
        schema: {
          operationId: "getApiKey",
          summary: "Get the API key that makes this call",
          description: "Use this to check that a key works, and for which client domain.",
          tags: ["account"],
          response: {
            200: keyAnswer,
            ...refusals(...keyReasons),
          },
        },
      },
      async (request) => {
        const key = apiKeyOf(request);
        return {
          clientDomainId: key.clientDomainId,
          organizationId: key.organizationId,
          domain: key.domain,
          livemode: key.environment === "live",
          verified: key.verified,
        };
      },
    );
  });
}

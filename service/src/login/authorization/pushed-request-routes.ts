import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { useOAuthErrors } from "../../platform/http/http-errors.ts";
import { oauthRefusals } from "../../platform/http/refusals.ts";
import { authorizationMembers, takeAnyForm } from "./authorization-parameters.ts";
import { authorizationFaults } from "./authorization-request.ts";
import { authenticateClientOnce } from "../client/client-authentication.ts";
import type { LoginContext } from "../login-context.ts";
import { pushPath, pushRequest } from "./pushed-request.ts";
import { limitPushes } from "./start-limits.ts";
import { anyClient, clientMembers } from "../token/token-schemas.ts";
import { clientCallOf, dpopOf } from "../token/token-routes.ts";

const PushedForm = Type.Object({ ...clientMembers, ...authorizationMembers });
const PushedBody = Type.Object(
  {
    request_uri: Type.String({
      description:
        "Stands for the request in `/oauth2/auth`: `urn:ietf:params:oauth:request_uri:` and an id.",
    }),
    expires_in: Type.Integer({ description: "Seconds." }),
  },
  { description: "The request is stored for one use." },
);

const failures = oauthRefusals({
  400: [...authorizationFaults, "invalid_dpop_proof"],
  401: ["invalid_client"],
  413: ["invalid_request"],
  429: ["temporarily_unavailable"],
});

/** `POST /oauth2/par` (RFC 9126); server to server, so it never answers another origin. */
export async function pushedRequestRoutes(ctx: LoginContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    useOAuthErrors(ctx, scope);
    scope.removeContentTypeParser("application/json");
    const schema = {
      body: PushedForm,
      response: { 201: PushedBody, ...failures },
      consumes: ["application/x-www-form-urlencoded"],
      tags: ["login"],
      security: anyClient,
      operationId: "pushAuthorizationRequest",
      summary: "Push an authorization request (RFC 9126)",
    };
    const options = { schema, validatorCompiler: takeAnyForm };
    scope.post(pushPath, options, async (request, reply) => {
      const call = clientCallOf(ctx, request);
      const client = await authenticateClientOnce(ctx, call);
      await limitPushes(ctx, client, call.address);
      const { form } = call;
      const pushed = await pushRequest(ctx, client, { form, dpop: dpopOf(request) });
      return reply.code(201).send(pushed);
    });
  });
}

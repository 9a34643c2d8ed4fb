import { Type } from "../platform/schema.ts";
import type { Http } from "../platform/http.ts";
import type { KybContext } from "./kyb-context.ts";

const cacheSeconds = 300;

/** Publishes the keys of attestations, for everybody. */
export function attestationRoutes(ctx: KybContext, http: Http): void {
  http.get(
    "/.well-known/kyb-jwks.json",
    {
      schema: {
        summary: "Keys of attestations",
        description: "RSA keys (RFC 7517) that sign attestations and nothing else.",
        tags: ["kyb"],
        response: {
          200: Type.Any({ description: "A key set." }),
          304: Type.Null({ description: "Not changed since the `If-None-Match`." }),
        },
      },
    },
    async (request, reply) => {
      const { body, etag } = await ctx.attestationKeys.keySet();
      void reply.headers({
        etag,
        "cache-control": `public, max-age=${cacheSeconds}`,
        "access-control-allow-origin": "*",
      });
      if (request.headers["if-none-match"]?.includes(etag) === true)
        return reply.code(304).send(null);
      return reply.type("application/json").send(body);
    },
  );
}

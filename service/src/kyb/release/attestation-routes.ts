import type { Http } from "../../platform/http/http.ts";
import { publish } from "../../platform/http/published-document.ts";
import type { KybContext } from "../kyb-context.ts";

/** Publishes the public keys of attestations. */
export function attestationRoutes(ctx: KybContext, http: Http): void {
  publish(http, {
    name: "kyb-jwks.json",
    read: async () => ctx.attestationKeys.keySet(),
    tag: "kyb",
    operationId: "getKybJwks",
    summary: "Keys of attestations",
    description: "RSA keys (RFC 7517) that sign attestations and nothing else.",
  });
}

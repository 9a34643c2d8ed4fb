import { Bytes32, Type } from "../../platform/http/schema.ts";
import { proveCompanyLeaves } from "../../credentials/index.ts";
import type { Http } from "../../platform/http/http.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { callerReasons } from "../entitlement.ts";
import { getDataRequest } from "../request/data-requests.ts";
import type { KybContext } from "../kyb-context.ts";
import {
  eip155Id,
  fieldName,
  requestId,
  RequestParams,
  seconds,
  shownAddress,
  shownHash,
} from "../member-schemas.ts";
import { getRelease } from "./releases.ts";
import { apiKeyOf } from "../../accounts/index.ts";

const readReasons = [
  ...callerReasons,
  "request_not_found",
  "not_released",
  "payload_expired",
] as const;

const release = Type.Object(
  {
    requestId,
    attestation: Type.String({ description: "The JWT, byte for byte as it was delivered." }),
    releasedAt: seconds("When the fields were released"),
    expiresAt: Type.Integer({ description: "When the service purges it." }),
  },
  { title: "Release", description: "What the business released." },
);

const proof = Type.Object(
  {
    name: fieldName,
    subject: Type.String({ description: "Empty for the business itself." }),
    commitment: shownHash("The commitment to the value, computed from value and pepper"),
    expiresAt: seconds("Until when the field is attested"),
    leaf: shownHash("The leaf, which the attestation calls `hash`"),
    root: shownHash("The root that the issuer attested on chain"),
    proof: Type.Array(Bytes32, { description: "The siblings from the leaf up to the root." }),
    issuer: shownAddress("The issuer's identity in the registry"),
    transactionHash: shownHash("The transaction that attested the root"),
    chainId: eip155Id,
    registry: shownAddress("The contract that knows which roots are attested"),
  },
  { title: "FieldProof" },
);

/** The contents of a release, as long as they are stored. @param path the path of data requests */
export function releaseRoutes(ctx: KybContext, scope: Http, path: string): void {
  scope.get(
    `${path}/:id/release`,
    {
      config: { largeAnswerOf: (request) => apiKeyOf(request).clientDomainId },
      schema: {
        operationId: "getRelease",
        summary: "Get the attestation again",
        description: "Available for 30 days after the release.",
        tags: ["kyb"],
        params: RequestParams,
        response: { 200: release, ...refusals(...readReasons) },
      },
    },
    async (request) => {
      const { id } = await getDataRequest(ctx, apiKeyOf(request), request.params.id);
      const { attestation, releasedAt, expiresAt } = await getRelease(ctx, id);
      return { requestId: id, attestation, releasedAt, expiresAt };
    },
  );
  proofsRoute(ctx, scope, path);
}

function proofsRoute(ctx: KybContext, scope: Http, path: string): void {
  scope.get(
    `${path}/:id/proofs`,
    {
      schema: {
        operationId: "getReleaseProofs",
        summary: "Get proofs of the released fields, to be checked against the chain",
        description:
          "The answer covers leaves whose root is already on chain; ask again later for the others.",
        tags: ["kyb"],
        params: RequestParams,
        response: {
          200: Type.Object(
            {
              requestId,
              proofs: Type.Array(proof, {
                description: "One for each released leaf on chain, the newest record first.",
              }),
            },
            { description: "The proofs. Anybody who has the value and the pepper can check them." },
          ),
          ...refusals(...readReasons),
        },
      },
    },
    async (request) => {
      const found = await getDataRequest(ctx, apiKeyOf(request), request.params.id);
      const { leaves } = await getRelease(ctx, found.id);
      const { business, environment } = found;
      const asked = { business, environment, leaves: leaves.map(({ leaf }) => leaf) };
      const proofs = await proveCompanyLeaves(ctx, asked);
      const { chainId, contracts } = ctx.chain;
      const place = () => ({ chainId, registry: contracts.registry });
      return {
        requestId: found.id,
        proofs: proofs.map((each) => Object.assign(place(), each, { proof: [...each.proof] })),
      };
    },
  );
}

import { type Static, Type } from "../../platform/http/schema.ts";
import { hash32 } from "../../platform/http/text-form.ts";
import { type Address, type Hex32, isBusinessField } from "@svc/protocol";
import { type ApiKey, apiKeyOf } from "../../accounts/index.ts";
import { type CompanyClaim, matchCompanyLeaves } from "../../credentials/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import type { Http } from "../../platform/http/http.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { callerReasons, requireEntitlement, kybBodyReasons } from "../entitlement.ts";
import { hasReleased } from "../billing/charge-store.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import { givenAddress } from "../member-schemas.ts";
import { readAddress } from "../../platform/http/address-input.ts";

/** Twice as many as a record has fields, since a merchant may hold the fields of several releases. */
const fieldsMax = 800;
const bodyBytesMax = 256 * 1024;

const place = {
  name: Type.String({ maxLength: 100, description: "The name of the field in the catalogue." }),
  subject: Type.String({ maxLength: 40, description: "Empty for the business itself." }),
};

const ValidBody = Type.Object(
  {
    businessWalletAddress: givenAddress("The business that released them"),
    fields: Type.Array(
      Type.Object(
        {
          ...place,
          hash: hash32({
            description: "The leaf, as in the attestation.",
          }),
        },
        { additionalProperties: false },
      ),
      {
        minItems: 1,
        maxItems: fieldsMax,
        description: "The fields to check, as in attestations of the business.",
      },
    ),
  },
  { additionalProperties: false },
);

const Reason = Type.Union(
  [Type.Literal("EXPIRED"), Type.Literal("REVOKED"), Type.Literal("UNKNOWN")],
  {
    description:
      "`UNKNOWN`: there is no such leaf, or the business has never released anything to you.",
  },
);

const Validity = Type.Object(
  {
    valid: Type.Array(Type.Object(place), { description: "The fields that still count." }),
    invalid: Type.Array(Type.Object({ ...place, reason: Reason }), {
      description: "The fields that do not, each with its reason.",
    }),
  },
  { description: "Both lists are in the order of the call." },
);

/** Whether released fields are still valid (decisions section 6, Attestation). Free of charge. */
export async function validRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:data-request");
    scope.post(
      "/api/v1/kyb/valid",
      {
        bodyLimit: bodyBytesMax,
        config: { onlyReads: true },
        schema: {
          operationId: "validateReleasedFields",
          summary: "Check whether released fields are still valid",
          description: "You send no values: the leaf stands for the value.",
          tags: ["kyb"],
          body: ValidBody,
          response: {
            200: Validity,
            ...refusals(
              ...kybBodyReasons,
              ...callerReasons,
              "unknown_field",
              "idempotency_key_conflict",
            ),
          },
        },
      },
      async (request, reply) => {
        const asked = readClaims(request.body);
        const caller = apiKeyOf(request);
        await ctx.lookups.note({ keyId: caller.id, user: asked.business });
        return idempotently(ctx, { request, reply }, async (tx) => ({
          status: 200,
          body: await checkClaims(ctx, tx, { caller, ...asked }),
        }));
      },
    );
  });
}

interface Asked {
  readonly business: Address;
  readonly claims: readonly CompanyClaim[];
}

/** @throws {Problem} unknown_field, naming in the details what is not in the catalogue */
function readClaims(body: Static<typeof ValidBody>): Asked {
  const business = readAddress("businessWalletAddress", body.businessWalletAddress);
  const claims: CompanyClaim[] = [];
  const unknown: string[] = [];
  for (const { name, subject, hash } of body.fields)
    if (isBusinessField(name)) claims.push({ name, subject, hash: hash.toLowerCase() as Hex32 });
    else unknown.push(name);
  if (unknown.length > 0) throw new Problem("unknown_field", { details: { fields: unknown } });
  return { business, claims };
}

/** If the business has never released anything to the caller, all leaves are unknown, after the same database calls. */
async function checkClaims(
  ctx: KybContext,
  tx: Queryable,
  { caller, business, claims }: Asked & { caller: ApiKey },
): Promise<Static<typeof Validity>> {
  const { organizationId, environment } = caller;
  const isKnown = await hasReleased(tx, { organizationId, business });
  const now = ctx.clock.now();
  const statuses = await matchCompanyLeaves(tx, { environment, business, claims, now });
  const validity: Static<typeof Validity> = { valid: [], invalid: [] };
  for (const [index, { name, subject }] of claims.entries()) {
    const status = isKnown ? (statuses[index] ?? "UNKNOWN") : "UNKNOWN";
    if (status === "LIVE") validity.valid.push({ name, subject });
    else validity.invalid.push({ name, subject, reason: status });
  }
  return validity;
}

import { readAddress } from "../platform/http/address-input.ts";
import { Bytes32, ChainNumber, FieldText, Type } from "../platform/http/schema.ts";
import {
  type Address,
  type Hex32,
  type Info,
  isFieldName,
  isHexOf,
  isParentName,
} from "@svc/protocol";
import { apiKeyOf, requireApiKey } from "../accounts/index.ts";
import type { Http } from "../platform/http/http.ts";
import { invalidRequest } from "../platform/http/problems.ts";
import { envelope, envelopeBody } from "../platform/http/envelope.ts";
import { bodyReasons, keyReasons, refusals } from "../platform/http/refusals.ts";
import { type AskedName, checkInfos, findProofs, findVerified } from "./checks.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { refuseUnknownNames } from "./unknown-names.ts";

/** Stored values include images: decisions section 1, Bounds. */
const validBytesMax = 8 * 1024 * 1024;
const infosMax = 400;

const namesOf = (description: string) => Type.Array(Type.String(), { description });
const reason = Type.Union([
  Type.Literal("EXPIRED"),
  Type.Literal("REVOKED"),
  Type.Literal("UNKNOWN"),
]);

/** Fields that a user has verified: `verified`, `valid` and `proof`, for merchants (service document, KYC). */
export async function checkRoutes(ctx: CredentialsContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireApiKey(ctx, scope);
    verifiedRoute(ctx, scope);
    validRoute(ctx, scope);
    proofRoute(ctx, scope);
  });
}

const askedQuery = Type.Object({
  user: Type.String({ description: "The user identity, with or without `0x`." }),
  items: Type.Union([Type.String(), Type.Array(Type.String())], {
    description: "A field or parent name; repeat the parameter for each.",
  }),
});

function verifiedRoute(ctx: CredentialsContext, scope: Http): void {
  scope.get(
    "/api/v1/blockchain/verified",
    {
      schema: {
        operationId: "listVerifiedFields",
        summary: "List which fields a user has verified",
        description:
          "A parent name counts as verified with any one of its documents. An organization that may not ask about this user gets the answer for a user without verified fields.",
        tags: ["kyc"],
        querystring: askedQuery,
        response: {
          200: envelopeBody(
            Type.Object(
              {
                verifiedItems: Type.Optional(
                  namesOf("The names for which the user has a field that is valid now."),
                ),
                unVerifiedItems: Type.Optional(namesOf("The other names.")),
              },
              { description: "Each name that was asked for, in one of two lists." },
            ),
            "An empty list is omitted.",
          ),
          ...refusals("invalid_request", "invalid_fields", ...keyReasons),
        },
      },
    },
    async (request) => {
      const asked = readAsked(request.query);
      const key = apiKeyOf(request);
      const { verified, unverified } = await findVerified(ctx, key, asked);
      return envelope(
        {
          ...(verified.length === 0 ? {} : { verifiedItems: verified }),
          ...(unverified.length === 0 ? {} : { unVerifiedItems: unverified }),
        },
        "Items were successfully checked.",
      );
    },
  );
}

const validBody = Type.Object({
  user: Type.String({
    maxLength: 100,
    description: "The user identity, with or without `0x`.",
  }),
  infos: Type.Array(
    Type.Object({
      field: Type.String({ maxLength: 100, description: "A field name; no parent name." }),
      data: Type.String({ description: "The decoded text." }),
      pepper: Type.String({ maxLength: 130, description: "Hex, with or without `0x`." }),
    }),
    {
      minItems: 1,
      maxItems: infosMax,
      description: "Triples as the webhook delivered them, with data and pepper decoded.",
    },
  ),
});

function validRoute(ctx: CredentialsContext, scope: Http): void {
  scope.post(
    "/api/v1/blockchain/valid",
    {
      bodyLimit: validBytesMax,
      config: { onlyReads: true },
      schema: {
        operationId: "validateFields",
        summary: "Check whether stored values are still valid",
        tags: ["kyc"],
        body: validBody,
        response: {
          200: envelopeBody(
            Type.Object(
              {
                valids: Type.Optional(namesOf("The fields that have a triple which is valid now.")),
                unValids: Type.Optional(
                  namesOf("The fields that have one which is not; `reasons` says why."),
                ),
                reasons: Type.Optional(
                  Type.Record(Type.String(), reason, {
                    description:
                      "Why a field is not valid. `EXPIRED` and `REVOKED` are given only for a triple that was issued; `REVOKED` if its issuer revoked it, its user withdrew it, or a distrusted issuer attested it.",
                  }),
                ),
              },
              { description: "The fields that were given, by whether their triples are valid." },
            ),
            "An empty list is omitted.",
          ),
          ...refusals(...bodyReasons, "invalid_fields", ...keyReasons),
        },
      },
    },
    async (request) => {
      const user = readAddress("user", request.body.user);
      const infos = readInfos(request.body.infos);
      const key = apiKeyOf(request);
      const found = await checkInfos(ctx, key, { user, infos });
      const { valid, invalid, reasons } = found;
      return envelope(
        {
          ...(valid.length === 0 ? {} : { valids: valid }),
          ...(invalid.length === 0 ? {} : { unValids: invalid, reasons }),
        },
        "user was successfully checked.",
      );
    },
  );
}

function proofRoute(ctx: CredentialsContext, scope: Http): void {
  scope.get(
    "/api/v1/blockchain/proof",
    {
      schema: {
        operationId: "getFieldProofs",
        summary: "Get proofs of fields that were delivered to you",
        description:
          "With a field's value and pepper, its proof is all that you need to check the field on chain without this service. Fields that were not delivered to the calling organization are left out.",
        tags: ["kyc"],
        querystring: askedQuery,
        response: {
          200: envelopeBody(
            Type.Object(
              {
                proofs: Type.Optional(
                  Type.Array(
                    Type.Object({
                      field: FieldText,
                      commitment: Bytes32,
                      expiresAt: Type.Integer({ description: "Unix seconds." }),
                      leaf: Bytes32,
                      root: Bytes32,
                      proof: Type.Array(Bytes32, {
                        description: "The siblings from the leaf to the root.",
                      }),
                      issuer: Type.String({
                        description: "The issuer's address in the registry on chain.",
                      }),
                      transactionHash: Bytes32,
                      chainId: ChainNumber,
                      registry: Type.String({ description: "The address of CredentialRegistry." }),
                    }),
                    {
                      description:
                        "One for each field in each credential that was delivered to you.",
                    },
                  ),
                ),
              },
              { description: "What was found." },
            ),
            "Newest first; omitted if there is none.",
          ),
          ...refusals("invalid_request", "invalid_fields", ...keyReasons),
        },
      },
    },
    async (request) => {
      const key = apiKeyOf(request);
      const asked = readAsked(request.query);
      await ctx.lookups.note({ keyId: key.id, user: asked.user });
      const proofs = await findProofs(ctx, key, asked);
      const message = "proofs were successfully read.";
      if (proofs.length === 0) return envelope({}, message);
      const { chainId, contracts } = ctx.chain;
      const place = { chainId, registry: contracts.registry };
      const shown = proofs.map(({ proof, ...rest }) =>
        Object.assign(rest, place, { proof: [...proof] }),
      );
      return envelope({ proofs: shown }, message);
    },
  );
}

/** @throws {Problem} invalid_request, invalid_fields */
function readAsked(query: { user: string; items: string | string[] }): {
  user: Address;
  names: AskedName[];
} {
  const known: AskedName[] = [];
  const unknown: string[] = [];
  for (const name of [query.items].flat()) {
    if (isFieldName(name) || isParentName(name)) known.push(name);
    else unknown.push(name);
  }
  refuseUnknownNames(unknown);
  return { user: readAddress("user", query.user), names: known };
}

/** Replaces a pepper that does not have 32 bytes: it opens no leaf, like any wrong pepper. */
const noPepper: Hex32 = `0x${"0".repeat(64)}`;

function readInfos(given: readonly { field: string; data: string; pepper: string }[]): Info[] {
  const unknown = given.map(({ field }) => field).filter((field) => !isFieldName(field));
  refuseUnknownNames(unknown);
  return given.map(({ field, data, pepper }, index) => {
    if (!isFieldName(field)) throw new Error("unknown fields were refused before");
    const hex = pepper.startsWith("0x") ? pepper : `0x${pepper}`;
    if (!/^0x(?:[0-9a-fA-F]{2})+$/.test(hex))
      throw invalidRequest(`infos[${index}].pepper must be hex`);
    return { field, data, pepper: isHexOf(hex, 32) ? hex : noPepper };
  });
}

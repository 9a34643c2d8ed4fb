import type { FastifyRequest } from "fastify";
import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { isAcquaintedAlong, isBusinessAcquainted } from "./acquaintance-store.ts";
import { type Business, isGoodStanding } from "./business.ts";
import { findBusinessDomain } from "./business-domain.ts";
import { findBusiness } from "./business-store.ts";
import { callerReasons } from "../entitlement.ts";
import type { KybContext } from "../kyb-context.ts";
import { businessAddress, nameOfBusiness, shownAddress } from "../member-schemas.ts";
import { listMembers } from "./members.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { apiKeyOf } from "../../accounts/index.ts";

const tags = ["kyb"];
const WalletParams = Type.Object({
  wallet: Type.String({ maxLength: 100, description: "The address of the business." }),
});

const standing = {
  walletAddress: businessAddress,
  businessName: nameOfBusiness,
  domain: Type.Optional(
    Type.String({ description: "The domain of its website, if one was attested." }),
  ),
  status: Type.Union([Type.Literal("active"), Type.Literal("suspended"), Type.Literal("moved")], {
    description:
      "`active`, unless the operator stopped it (`suspended`) or it goes on in another wallet (`moved`).",
  }),
  verified: Type.Boolean({
    description:
      "Whether the business may release fields and sign; its logins report the same value.",
  }),
  registeredAt: Type.Integer({ description: "When its wallet was deployed, Unix seconds." }),
  successor: Type.Optional(
    Type.String({
      description:
        "The wallet to which the business moved; shown only to organizations that are told of the move.",
    }),
  ),
};

const Rule = Type.Object(
  {
    category: Type.Union([Type.Literal("signature_requests"), Type.Literal("data_requests")], {
      description: "What is decided: signatures and logins, or releases.",
    }),
    approvalMode: Type.Union([Type.Literal("MAJORITY"), Type.Literal("UNANIMOUS")], {
      description: "More than half of the voting members, or all of them.",
    }),
  },
  { title: "BusinessRule" },
);

const Member = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        description:
          "Shown only to organizations that the business logged in to, released fields to, or signed for.",
      }),
    ),
    walletAddress: shownAddress("The member's identity"),
    votingRights: Type.Boolean({ description: "False for a member who only observes." }),
    isCreator: Type.Boolean({ description: "Whether this member founded the business." }),
  },
  { title: "BusinessMember" },
);

const memberCount = Type.Integer({
  description: "How many members there are, with those who only observe.",
});

const reasons = [...callerReasons, "malformed_request", "business_not_found"] as const;

/** Lookups of businesses (decisions section 6), in a scope behind `kyb:read`. They cost nothing. */
export function lookupRoutes(ctx: KybContext, scope: Http): void {
  scope.get(
    "/api/v1/kyb/status/:wallet",
    {
      schema: {
        params: WalletParams,
        response: {
          200: Type.Object(standing, {
            title: "BusinessStanding",
            description: "The current state.",
          }),
          ...refusals(...reasons),
        },
        tags,
        operationId: "getBusinessStatus",
        summary: "Get the status of a business",
      },
    },
    async (request) =>
      standingOf(ctx, request, await getKnown(ctx, request, request.params.wallet)),
  );
  scope.get(
    "/api/v1/kyb/verify/:wallet",
    {
      schema: {
        params: WalletParams,
        response: {
          200: Type.Object(
            {
              ...standing,
              memberCount,
              governanceRules: Type.Array(Rule, { description: "One for each category." }),
            },
            {
              title: "BusinessRules",
              description: "The current state, with the rules by which the members approve.",
            },
          ),
          ...refusals(...reasons),
        },
        tags,
        operationId: "getBusinessRules",
        summary: "Get the status and the approval rules of a business",
      },
    },
    async (request) => {
      const business = await getKnown(ctx, request, request.params.wallet);
      const { members, rules } = business.charter;
      return {
        ...(await standingOf(ctx, request, business)),
        memberCount: members.length,
        governanceRules: [
          { category: "signature_requests" as const, approvalMode: rules.signature_requests },
          { category: "data_requests" as const, approvalMode: rules.data_requests },
        ],
      };
    },
  );
  membersRoute(ctx, scope);
}

function membersRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    "/api/v1/kyb/members/:wallet",
    {
      schema: {
        params: WalletParams,
        response: {
          200: Type.Object(
            {
              walletAddress: businessAddress,
              totalMembers: memberCount,
              members: Type.Array(Member, { description: "All of them; there are no pages." }),
            },
            {
              title: "BusinessMembers",
              description: "The members, in the order of their addresses.",
            },
          ),
          ...refusals(...reasons),
        },
        tags,
        operationId: "listBusinessMembers",
        summary: "List the members of a business",
      },
    },
    async (request) => {
      const { address } = await getKnown(ctx, request, request.params.wallet);
      const { organizationId } = apiKeyOf(request);
      const met = { business: address, organizationId };
      const [isAcquainted, members] = await Promise.all([
        isBusinessAcquainted(ctx.db, met),
        listMembers(ctx, ctx.db, address),
      ]);
      return {
        walletAddress: address,
        totalMembers: members.length,
        members: members.map(({ name, address: walletAddress, isVoting, isCreator }) => {
          const shown = { walletAddress, votingRights: isVoting, isCreator };
          return isAcquainted ? Object.assign(shown, { name }) : shown;
        }),
      };
    },
  );
}

/** A business whose wallet was deployed. */
type KnownBusiness = Business & {
  readonly status: "active" | "suspended" | "moved";
  readonly registeredAt: number;
};

/**
 * A deployed business in the environment of the key; others do not exist for the caller.
 *
 * @throws {Problem} invalid_request, business_not_found
 */
async function getKnown(
  ctx: KybContext,
  request: FastifyRequest,
  text: string,
): Promise<KnownBusiness> {
  const address = readAddress("wallet", text);
  const business = await findBusiness(ctx.db, address);
  const { environment } = apiKeyOf(request);
  if (business?.environment !== environment || !isKnown(business))
    throw new Problem("business_not_found");
  return business;
}

function isKnown(business: Business): business is KnownBusiness {
  const { status, registeredAt } = business;
  return registeredAt !== null && ["active", "suspended", "moved"].includes(status);
}

async function standingOf(ctx: KybContext, request: FastifyRequest, business: KnownBusiness) {
  const { address, name, status, registeredAt, successor } = business;
  const domain = await findBusinessDomain(ctx, ctx.db, business);
  const { environment, organizationId } = apiKeyOf(request);
  const met = { business: address, environment, organizationId };
  const isTold = successor !== null && (await isAcquaintedAlong(ctx.db, met));
  return {
    walletAddress: address,
    businessName: name,
    ...(domain === null ? {} : { domain }),
    status,
    verified: isGoodStanding(business),
    registeredAt,
    ...(isTold ? { successor } : {}),
  };
}

import { Type } from "../platform/schema.ts";
import { type Address, isHexOf, parseAddress } from "@svc/protocol";
import type { Http } from "../platform/http.ts";
import { Problem } from "../platform/problems.ts";
import { bodyReasons, refusals } from "../platform/refusals.ts";
import { findBusiness } from "./business-store.ts";
import { MembersBody, refusal, RulesBody } from "./charter-request.ts";
import { foundBusiness } from "./founding.ts";
import { findFounding, listBusinessesOf } from "./founding-store.ts";
import { limitGas } from "./gas-limits.ts";
import { type ProposalRequest, propose, showProposal } from "./governance.ts";
import { listProposalsOf } from "./governance-store.ts";
import type { KybContext, WalletCaller } from "./kyb-context.ts";
import { listMembers } from "./members.ts";
import { keepMember } from "./removal.ts";
import { listRemovals } from "./roster-store.ts";
import { shownCharter } from "./shown-charter.ts";
import { listMoves } from "./standing-store.ts";

const tags = ["wallet"];
/** Of one member. */
const businessesMax = 100;
const proposalsShownMax = 20;

const BusinessParams = Type.Object({ address: Type.String({ maxLength: 100 }) });
const Signature = Type.String({ minLength: 1, maxLength: 200, description: "65 bytes in hex." });

/** Businesses, for their members: founding, governance, and the way back of one who seemed lost. */
export function businessRoutes(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  foundRoute(ctx, scope, getWalletUser);
  listRoute(ctx, scope, getWalletUser);
  proposeRoute(ctx, scope, getWalletUser);
  keepRoute(ctx, scope, getWalletUser);
}

const FoundBody = Type.Object(
  {
    name: Type.String({ maxLength: 200 }),
    environment: Type.Optional(Type.Union([Type.Literal("live"), Type.Literal("sandbox")])),
    members: MembersBody,
    rules: Type.Optional(RulesBody),
    salt: Type.String({ maxLength: 66, description: "32 bytes in hex." }),
    deadline: Type.Integer({ minimum: 0, description: "Unix seconds." }),
    signature: Signature,
  },
  { additionalProperties: false },
);

const founded = Type.Object(
  {
    invitationId: Type.String(),
    address: Type.String({ description: "Where the wallet will be." }),
    status: Type.String(),
    deadline: Type.Integer(),
  },
  { description: "Members find the invitation in their inbox." },
);

function foundRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses",
    {
      schema: {
        body: FoundBody,
        response: {
          200: founded,
          201: founded,
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "not_a_member",
            "signature_wrong",
            "too_many",
            "rate_limited",
            "business_exists",
          ),
        },
        tags,
        summary: "Found a business",
      },
    },
    async (request, reply) => {
      const founder = await getWalletUser(request.headers.authorization);
      void reply.header("cache-control", "no-store");
      await limitGas(ctx, request);
      const { body } = request;
      const salt = body.salt.toLowerCase();
      if (!isHexOf(salt, 32)) throw refusal("salt is 32 bytes in hex");
      const { environment = "live" } = body;
      const given = { ...body, environment, salt };
      const { founding, isNew } = await foundBusiness(ctx, founder, given);
      const { invitationId, address, status, deadline } = founding;
      return reply.code(isNew ? 201 : 200).send({ invitationId, address, status, deadline });
    },
  );
}

function listRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.get(
    "/w/businesses",
    {
      schema: {
        response: {
          200: Type.Object(
            {
              items: Type.Array(
                Type.Object(
                  { address: Type.String(), name: Type.String(), status: Type.String() },
                  { additionalProperties: true },
                ),
              ),
              chainId: Type.Integer(),
              factories: Type.Object(
                { live: Type.String(), sandbox: Type.String() },
                { description: "By environment: what an invitation names." },
              ),
            },
            { description: "With members, rules, and what is under way; oldest first." },
          ),
          ...refusals("wallet_session_required"),
        },
        tags,
        summary: "Businesses of this identity",
      },
    },
    async (request, reply) => {
      const member = await getWalletUser(request.headers.authorization);
      void reply.header("cache-control", "no-store");
      const addresses = await listBusinessesOf(ctx.db, member, businessesMax);
      const { chainId, contracts } = ctx.chain;
      const { live, sandbox } = contracts.factories;
      const items = await Promise.all(addresses.map(async (each) => show(ctx, each, member)));
      return { items, chainId, factories: { live, sandbox } };
    },
  );
}

type ShownBusiness = { address: string; name: string; status: string } & Record<string, unknown>;

async function show(ctx: KybContext, address: Address, member: Address): Promise<ShownBusiness> {
  const [business, founding, members, removals, moves, proposals] = await Promise.all([
    findBusiness(ctx.db, address),
    findFounding(ctx.db, address),
    listMembers(ctx, ctx.db, address),
    listRemovals(ctx.db, [address]),
    listMoves(ctx.db, [address]),
    listProposalsOf(ctx.db, address, proposalsShownMax),
  ]);
  if (business === null || founding === null)
    throw new Error(`${member} is a member of no business`);
  const { name, status, environment, charter, epoch, nonce } = business;
  const self = members.find((each) => each.address === member);
  return {
    address,
    name,
    status,
    environment,
    verified: business.verifiedAt !== null,
    role: {
      isCreator: self?.isCreator ?? false,
      votingRights: self?.isVoting ?? false,
    },
    ...shownCharter(charter, members),
    chainId: ctx.chain.chainId,
    epoch,
    nonce,
    ...(status === "inviting"
      ? { invitation: { id: founding.invitationId, deadline: founding.deadline } }
      : {}),
    ...(business.registeredAt === null ? {} : { registeredAt: business.registeredAt }),
    ...(business.successor === null ? {} : { successor: business.successor }),
    removal:
      removals.map(({ member: whom, endsAt, keepNonce, answeredAt }) => ({
        member: whom,
        endsAt,
        keepNonce,
        hasAnswered: answeredAt !== null,
      }))[0] ?? null,
    move:
      moves.map(({ successor, endsAt, keepNonce }) => ({ successor, endsAt, keepNonce }))[0] ??
      null,
    proposals: proposals.map((proposal) => {
      const { id, status: state, createdAt } = proposal;
      return Object.assign({ id, status: state, createdAt }, showProposal(ctx, proposal));
    }),
  };
}

const operationOf = <T extends string>(name: T, description: string) =>
  Type.Literal(name, { description });

const ProposalBody = Type.Union([
  Type.Object(
    {
      operation: operationOf("changeCharter", "Members and rules; rules not named stay."),
      members: MembersBody,
      rules: Type.Optional(RulesBody),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      operation: operationOf("moveTo", "The business goes on in another wallet."),
      successor: Type.String({ maxLength: 100 }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      operation: operationOf("startRemoval", "Removes a member who seems lost, after 30 days."),
      member: Type.String({ maxLength: 100 }),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      operation: operationOf("withdraw", "Takes a signature of the business back."),
      hash: Type.String({ maxLength: 66 }),
    },
    { additionalProperties: false },
  ),
]);

function proposeRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses/:address/proposals",
    {
      schema: {
        params: BusinessParams,
        body: ProposalBody,
        response: {
          201: Type.Object(
            {
              proposalId: Type.String({ description: "Also what is voted on." }),
              expiresAt: Type.Integer(),
              nonce: Type.Integer(),
              needed: Type.Integer({ description: "Approvals." }),
            },
            { description: "Voting members, the proposer too, find it in their inbox." },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "business_not_found",
            "not_a_member",
            "too_many",
            "rate_limited",
            "removal_refused",
            "not_signed",
          ),
        },
        tags,
        summary: "Propose a change of a business",
      },
    },
    async (request, reply) => {
      const proposer = await getWalletUser(request.headers.authorization);
      void reply.header("cache-control", "no-store");
      await limitGas(ctx, request);
      const business = addressOf(request.params.address);
      const given = { business, request: request.body as ProposalRequest };
      const { id, ...made } = await propose(ctx, proposer, given);
      return reply.code(201).send({ proposalId: id, ...made });
    },
  );
}

function keepRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses/:address/keep",
    {
      schema: {
        params: BusinessParams,
        body: Type.Object({ signature: Signature }, { additionalProperties: false }),
        response: {
          200: Type.Object(
            { ended: Type.Union([Type.Literal("removal"), Type.Literal("move")]) },
            { description: "A removal ends on the chain with its next block." },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "business_not_found",
            "nothing_to_end",
            "signature_wrong",
          ),
        },
        tags,
        summary: "End one's own removal, or a move by the operator",
      },
    },
    async (request, reply) => {
      const member = await getWalletUser(request.headers.authorization);
      void reply.header("cache-control", "no-store");
      const { signature } = request.body;
      if (!isHexOf(signature, 65)) throw refusal("signature must be 65 bytes in hex");
      const business = addressOf(request.params.address);
      return keepMember(ctx, member, { business, signature });
    },
  );
}

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Problem("business_not_found");
  return address;
}

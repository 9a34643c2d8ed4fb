import { chosenBy, NoMembers, Type } from "../../platform/http/schema.ts";
import { isHexOf } from "@svc/protocol";
import type { Http } from "../../platform/http/http.ts";
import { nextCursor, pageParameters } from "../../platform/http/list-page.ts";
import { networkOfCaller } from "../../platform/http/large-answers.ts";
import { invalidRequest } from "../../platform/http/problems.ts";
import { bodyReasons, refusals } from "../../platform/http/refusals.ts";
import type { WalletCaller } from "../../platform/http/wallet-caller.ts";
import { BusinessParams, businessAddressOf } from "./business-params.ts";
import { MembersBody, rulesBody } from "./charter-request.ts";
import { abandonFounding, foundBusiness } from "./founding.ts";
import { limitGas } from "./gas-limits.ts";
import { propose, retractProposal } from "./proposals.ts";
import type { KybContext } from "../kyb-context.ts";
import {
  businessAddress,
  nameOfBusiness,
  eip155Id,
  seconds,
  shownAddress,
} from "../member-schemas.ts";
import type { ProposalRequest } from "./proposal.ts";
import { keepMember } from "./removal.ts";
import { showBusinesses } from "./shown-business.ts";

const tags = ["wallet"];

const Signature = Type.String({ minLength: 1, maxLength: 200, description: "65 bytes in hex." });

/** The routes of members: founding, governance, and ending one's own removal. */
export function businessRoutes(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  foundRoute(ctx, scope, getWalletUser);
  abandonRoute(ctx, scope, getWalletUser);
  listRoute(ctx, scope, getWalletUser);
  proposeRoute(ctx, scope, getWalletUser);
  retractRoute(ctx, scope, getWalletUser);
  keepRoute(ctx, scope, getWalletUser);
}

const FoundBody = Type.Object(
  {
    name: Type.String({
      maxLength: 200,
      description: "What members and merchants see: one line of 1 to 100 characters.",
    }),
    environment: Type.Optional(
      Type.Union([Type.Literal("live"), Type.Literal("sandbox")], {
        description: "Whose keys see the business, live or sandbox ones. Default: `live`.",
      }),
    ),
    members: MembersBody,
    rules: Type.Optional(
      rulesBody(
        "Rules that you leave out are MAJORITY, but `governance` is UNANIMOUS with one or two voting members.",
      ),
    ),
    salt: Type.String({ maxLength: 66, description: "32 bytes in hex." }),
    deadline: Type.Integer({ minimum: 0, description: "Unix seconds." }),
    signature: Signature,
  },
  { additionalProperties: false },
);

const founded = Type.Object(
  {
    invitationId: Type.String({ description: "The id of the invitation in the members' inboxes." }),
    address: shownAddress("The wallet that will be deployed"),
    status: Type.String({
      description:
        "`inviting` until all members have signed, then `deploying`; a repeat of the call may find it further on.",
    }),
    deadline: seconds("Until when the members may sign"),
  },
  { description: "The members find the invitation in their inbox." },
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
        operationId: "foundBusiness",
        summary: "Found a business",
      },
    },
    async (request, reply) => {
      const founder = await getWalletUser(request.headers.authorization);
      await limitGas(ctx, request);
      const { body } = request;
      const salt = body.salt.toLowerCase();
      if (!isHexOf(salt, 32)) throw invalidRequest("salt is 32 bytes in hex");
      const { environment = "live" } = body;
      const given = { ...body, environment, salt };
      const { founding, isNew } = await foundBusiness(ctx, founder, given);
      const { invitationId, address, status, deadline } = founding;
      return reply.code(isNew ? 201 : 200).send({ invitationId, address, status, deadline });
    },
  );
}

function abandonRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses/:address/abandon",
    {
      schema: {
        params: BusinessParams,
        body: NoMembers,
        response: {
          200: Type.Object(
            {
              status: Type.Literal("lapsed", { description: "What the business is from now on." }),
            },
            { description: "The founding has ended; nobody is invited any more." },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "business_not_found",
            "ballot_over",
          ),
        },
        tags,
        operationId: "abandonFounding",
        summary: "Abandon your own founding before everybody has signed",
      },
    },
    async (request) => {
      const founder = await getWalletUser(request.headers.authorization);
      await abandonFounding(ctx, founder, businessAddressOf(request.params));
      return { status: "lapsed" as const };
    },
  );
}

function listRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.get(
    "/w/businesses",
    {
      config: { costlyAnswerOf: networkOfCaller(ctx) },
      schema: {
        querystring: Type.Object({
          cursor: pageParameters.cursor,
        }),
        response: {
          200: Type.Object(
            {
              items: Type.Array(
                Type.Object(
                  {
                    address: businessAddress,
                    name: nameOfBusiness,
                    status: Type.String({
                      description:
                        "`inviting` or `deploying` before its wallet is on chain; then `active`, `suspended` by the operator, or `moved` to another wallet.",
                    }),
                  },
                  { title: "Business", additionalProperties: true },
                ),
                { description: "Each with further members, which wallets show." },
              ),
              nextCursor,
              chainId: eip155Id,
              factories: Type.Object(
                {
                  live: shownAddress("The contract that deploys live wallets"),
                  sandbox: shownAddress("The contract that deploys sandbox wallets"),
                },
                { description: "The factory of each environment, as invitations name it." },
              ),
            },
            {
              description:
                "The businesses, oldest first, with their members, rules, and the proposals, removals and moves under way. A page holds at most 100 of them and about 1 MiB.",
            },
          ),
          ...refusals("invalid_request", "wallet_session_required", "rate_limited"),
        },
        tags,
        operationId: "listBusinesses",
        summary: "List the businesses of this identity",
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const page = await showBusinesses(ctx, member, request.query.cursor);
      const { chainId, contracts } = ctx.chain;
      const { live, sandbox } = contracts.factories;
      return { ...page, chainId, factories: { live, sandbox } };
    },
  );
}

const operationOf = <T extends string>(name: T, description: string) =>
  Type.Literal(name, { description });

const ProposalBody = chosenBy(
  "operation",
  Type.Union([
    Type.Object(
      {
        operation: operationOf("changeCharter", "Replaces all members, and changes rules."),
        members: MembersBody,
        rules: Type.Optional(rulesBody("Rules that you leave out stay as they are.")),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        operation: operationOf("moveTo", "Continues the business in another wallet."),
        successor: Type.String({
          maxLength: 100,
          description: "The address of another active business.",
        }),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        operation: operationOf("startRemoval", "Removes a member who seems lost, after 30 days."),
        member: Type.String({ maxLength: 100, description: "The member's address." }),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        operation: operationOf("withdraw", "Withdraws a signature of the business."),
        hash: Type.String({ maxLength: 66, description: "The digest that was signed." }),
      },
      { additionalProperties: false },
    ),
  ]),
);

const proposedAs = (description: string) =>
  Type.Object(
    {
      proposalId: Type.String({ description: "Also the id of the vote." }),
      expiresAt: seconds("Until when members may vote"),
      nonce: Type.Integer({
        description:
          "How many acts of governance the wallet has carried out. Approvals sign it; after another act they are void.",
      }),
      needed: Type.Integer({ description: "How many approvals are needed." }),
    },
    { description },
  );

function proposeRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses/:address/proposals",
    {
      schema: {
        params: BusinessParams,
        body: ProposalBody,
        response: {
          200: proposedAs(
            "The same proposal, which this member made before and on which members still vote.",
          ),
          201: proposedAs(
            "Voting members, including the proposer, find the proposal in their inbox.",
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
            "chain_unavailable",
          ),
        },
        tags,
        operationId: "proposeChange",
        summary: "Propose a change of a business",
      },
    },
    async (request, reply) => {
      const proposer = await getWalletUser(request.headers.authorization);
      await limitGas(ctx, request);
      const business = businessAddressOf(request.params);
      const given = { business, request: request.body as ProposalRequest };
      const { id, isNew, ...made } = await propose(ctx, proposer, given);
      return reply.code(isNew ? 201 : 200).send({ proposalId: id, ...made });
    },
  );
}

function retractRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses/:address/proposals/:id/retract",
    {
      schema: {
        params: Type.Object({
          ...BusinessParams.properties,
          id: Type.String({ description: "The `proposalId`." }),
        }),
        body: NoMembers,
        response: {
          200: Type.Object(
            {
              status: Type.Literal("retracted", {
                description: "What the proposal is from now on.",
              }),
            },
            { description: "The proposal has ended; nobody is asked any more." },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "business_not_found",
            "ballot_not_found",
            "ballot_over",
          ),
        },
        tags,
        operationId: "retractProposal",
        summary: "Retract your own proposal before it is decided",
      },
    },
    async (request) => {
      const proposer = await getWalletUser(request.headers.authorization);
      const { id } = request.params;
      const business = businessAddressOf(request.params);
      await retractProposal(ctx, proposer, { business, id });
      return { status: "retracted" as const };
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
            {
              ended: Type.Union([Type.Literal("removal"), Type.Literal("move")], {
                description: "What the signature was for.",
              }),
            },
            { description: "A move has ended. A removal ends once the signature is on chain." },
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
        operationId: "keep",
        summary: "Stop your own removal, or a move that the operator announced",
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const { signature } = request.body;
      if (!isHexOf(signature, 65)) throw invalidRequest("signature must be 65 bytes in hex");
      const business = businessAddressOf(request.params);
      return keepMember(ctx, member, { business, signature });
    },
  );
}

import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { parseUuid } from "../../platform/ids.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../../platform/http/list-page.ts";
import { bodyReasons, refusals } from "../../platform/http/refusals.ts";
import type { WalletCaller } from "../../platform/http/wallet-caller.ts";
import type { KybContext } from "../kyb-context.ts";
import { organizationName } from "../member-schemas.ts";
import { BusinessParams, businessAddressOf } from "./business-params.ts";
import { requireMember } from "./members.ts";
import { setBlocked } from "../request/requester-block.ts";
import { listBlocks } from "../request/requester-block-store.ts";
import { shownRequester } from "../request/shown-requester.ts";

const BlockBody = Type.Object(
  {
    requestId: Type.String({
      minLength: 1,
      maxLength: 100,
      description: "Any request of the organization to this business, open or ended.",
    }),
    isBlocked: Type.Optional(
      Type.Boolean({ description: "False to accept its requests again. Default: true." }),
    ),
  },
  { additionalProperties: false },
);

/** Lets a voting member block requests of an organization, and members list blocked organizations. */
export function blockRoutes(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  blockRoute(ctx, scope, getWalletUser);
  listRoute(ctx, scope, getWalletUser);
}

function blockRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.post(
    "/w/businesses/:address/block",
    {
      schema: {
        operationId: "blockOrganization",
        summary: "Block an organization, or accept its requests again",
        description: "Open requests are not affected. The member who did it is recorded.",
        tags: ["wallet"],
        params: BusinessParams,
        body: BlockBody,
        response: {
          200: Type.Object(
            {
              isBlocked: Type.Boolean({
                description: "Whether the organization's new requests are refused from now on.",
              }),
            },
            { description: "The current state of the block." },
          ),
          ...refusals(
            ...bodyReasons,
            "wallet_session_required",
            "business_not_found",
            "not_a_member",
            "request_not_found",
          ),
        },
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const { requestId, isBlocked = true } = request.body;
      const business = businessAddressOf(request.params);
      await setBlocked(ctx, member, { business, requestId, isBlocked });
      return { isBlocked };
    },
  );
}

const Block = Type.Object(
  {
    requester: Type.Object(
      {
        name: organizationName,
        domain: Type.Optional(
          Type.String({ description: "The domain of that request, while it is verified." }),
        ),
      },
      { description: "Who is blocked." },
    ),
    requestId: Type.String({
      description: "The organization's last request, by which a member can undo the block.",
    }),
    blockedAt: Type.Integer({ description: "Unix seconds." }),
  },
  { title: "Block" },
);

function listRoute(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  scope.get(
    "/w/businesses/:address/blocks",
    {
      schema: {
        operationId: "listBlocks",
        summary: "List the organizations that the business has blocked",
        tags: ["wallet"],
        params: BusinessParams,
        querystring: Type.Object(pageParameters),
        response: {
          200: pageBody(Block, {
            description: "Every member may list them; the newest organization first.",
          }),
          ...refusals("invalid_request", "wallet_session_required", "business_not_found"),
        },
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const { limit, before } = readPage(request.query, parseUuid);
      const business = businessAddressOf(request.params);
      await requireMember(ctx.db, { business, member });
      const rows = await listBlocks(ctx.db, business, { before, limit: limit + 1 });
      return pageOf(rows, limit, ({ requestId, blockedAt, ...requester }) => ({
        requester: shownRequester(ctx, requester),
        requestId,
        blockedAt,
      }));
    },
  );
}

import type { Http } from "../../platform/http/http.ts";
import { parseUlid } from "../../platform/ids.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../../platform/http/list-page.ts";
import { refusals } from "../../platform/http/refusals.ts";
import type { WalletCaller } from "../../platform/http/wallet-caller.ts";
import { Type } from "../../platform/http/schema.ts";
import { BusinessParams, businessAddressOf } from "../business/business-params.ts";
import { requireMember } from "../business/members.ts";
import type { KybContext } from "../kyb-context.ts";
import { organizationName } from "../member-schemas.ts";
import { shownRequester } from "../request/shown-requester.ts";
import { listReleasesOf } from "./release-store.ts";

const PastRelease = Type.Object(
  {
    requestId: Type.String({
      description: "The id of the request, and of the vote that decided it.",
    }),
    requester: Type.Object(
      {
        name: organizationName,
        domain: Type.Optional(Type.String({ description: "Only while the domain is verified." })),
      },
      { description: "Who got the values." },
    ),
    purpose: Type.String({ description: "Why the requester asked, as the members saw it." }),
    fields: Type.Array(Type.String(), { description: "The names of the released fields." }),
    releasedAt: Type.Integer({ description: "Unix seconds." }),
  },
  { title: "PastRelease" },
);

/** The releases of a business, for its members: names of fields without a time limit, but no values. */
export function releaseHistoryRoutes(
  ctx: KybContext,
  scope: Http,
  getWalletUser: WalletCaller,
): void {
  scope.get(
    "/w/businesses/:address/releases",
    {
      schema: {
        operationId: "listReleases",
        summary: "List what the business released, and to whom",
        tags: ["wallet"],
        params: BusinessParams,
        querystring: Type.Object(pageParameters),
        response: {
          200: pageBody(PastRelease, {
            description: "Every member may list them; newest first. Names of fields, no values.",
          }),
          ...refusals("invalid_request", "wallet_session_required", "business_not_found"),
        },
      },
    },
    async (request) => {
      const member = await getWalletUser(request.headers.authorization);
      const { limit, before } = readPage(request.query, parseUlid);
      const business = businessAddressOf(request.params);
      await requireMember(ctx.db, { business, member });
      const rows = await listReleasesOf(ctx.db, business, { before, limit: limit + 1 });
      return pageOf(rows, limit, ({ requestId, purpose, fields, releasedAt, ...requester }) => ({
        requestId,
        requester: shownRequester(ctx, requester),
        purpose,
        fields: [...fields],
        releasedAt,
      }));
    },
  );
}

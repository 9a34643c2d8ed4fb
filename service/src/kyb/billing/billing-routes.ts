import { Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { parseUlid } from "../../platform/ids.ts";
import { pageBody, pageOf, pageParameters, readPage } from "../../platform/http/list-page.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { chargeRecordOf, readAccount } from "./billing.ts";
import { callerReasons, requireEntitlement } from "../entitlement.ts";
import type { KybContext } from "../kyb-context.ts";
import { listCharges } from "./charge-store.ts";
import { currency, listPrices } from "./pricing.ts";
import { priceLine } from "./price-line-schema.ts";
import { apiKeyOf } from "../../accounts/index.ts";

const chf = (description: string) =>
  Type.Number({ description: `${description} CHF, two decimals at most.` });

const account = Type.Object(
  {
    currency: Type.String(),
    totalChf: chf("All that was ever paid in: the sum of what is spent, kept back and available."),
    spentChf: chf("Charged for releases and packages."),
    packagesChf: chf("Of what is spent, for packages; the rest are the charges."),
    frozenChf: chf("Kept back for open requests."),
    availableChf: chf("What requests may still keep back."),
    billingEnabled: Type.Boolean({ description: "Whether there was ever any money." }),
  },
  {
    title: "Account",
    description: "The balance of the organization, live or sandbox like the key.",
  },
);

const charge = Type.Object(
  {
    chargeId: Type.String(),
    requestId: Type.String(),
    businessWalletAddress: Type.String(),
    chargedAt: Type.Integer({ description: "Unix seconds." }),
    currency: Type.String(),
    totalCents: Type.Integer(),
    lines: Type.Array(priceLine),
  },
  { title: "Charge" },
);

/** Prices and accounts, for merchants (decisions section 6, Lookups and Billing). */
export async function billingRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:read");
    pricingRoute(scope);
    accountRoute(ctx, scope);
    chargesRoute(ctx, scope);
  });
}

function pricingRoute(scope: Http): void {
  scope.get(
    "/api/v1/kyb/pricing",
    {
      schema: {
        summary: "What each field costs",
        tags: ["kyb"],
        response: {
          200: Type.Object(
            {
              currency: Type.String(),
              fields: Type.Array(
                Type.Object({
                  name: Type.String(),
                  tier: Type.String(),
                  cents: Type.Integer(),
                  naturalPersonPii: Type.Boolean({
                    description:
                      "According to the catalogue; every field of a sole proprietor is personal.",
                  }),
                  subjectType: Type.String(),
                }),
              ),
            },
            { description: "In catalogue order." },
          ),
          ...refusals(...callerReasons),
        },
      },
    },
    async () => ({ currency, fields: listPrices() }),
  );
}

function accountRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    "/api/v1/kyb/billing/account",
    {
      schema: {
        summary: "The organization's balance",
        tags: ["kyb"],
        response: { 200: account, ...refusals(...callerReasons) },
      },
    },
    async (request) => {
      return readAccount(ctx, apiKeyOf(request));
    },
  );
}

function chargesRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    "/api/v1/kyb/billing/charges",
    {
      schema: {
        summary: "What releases cost, line by line",
        tags: ["kyb"],
        querystring: Type.Object(pageParameters, { additionalProperties: false }),
        response: {
          200: pageBody(charge, { description: "Newest first." }),
          ...refusals("malformed_request", ...callerReasons),
        },
      },
    },
    async (request) => {
      const { limit, before } = readPage(request.query, parseUlid);
      const rows = await listCharges(ctx.db, apiKeyOf(request), { before, limit: limit + 1 });
      return pageOf(rows, limit, chargeRecordOf);
    },
  );
}

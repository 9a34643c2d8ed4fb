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
import { priceLine, priceTier } from "./price-line-schema.ts";
import {
  cents,
  currencyCode,
  fieldName,
  seconds,
  shownAddress,
  subjectType,
} from "../member-schemas.ts";
import { apiKeyOf } from "../../accounts/index.ts";

const chf = (description: string) =>
  Type.Number({ description: `${description} In CHF, with at most two decimals.` });

const account = Type.Object(
  {
    currency: currencyCode,
    totalChf: chf("All money that was ever paid in: the sum of what is spent, held and available."),
    spentChf: chf("Spent on releases and packages."),
    packagesChf: chf(
      "The part of `spentChf` that was spent on packages; the rest are the charges.",
    ),
    frozenChf: chf("Held for open requests."),
    availableChf: chf("Available for further requests."),
    billingEnabled: Type.Boolean({ description: "Whether any money was ever paid in." }),
  },
  {
    title: "Account",
    description: "The balance of the organization, live or sandbox like the key.",
  },
);

const charge = Type.Object(
  {
    chargeId: Type.String({ description: "The id of the charge, a ULID." }),
    requestId: Type.String({ description: "The data request that was released." }),
    businessWalletAddress: shownAddress("The business that released"),
    chargedAt: seconds("When the fields were released"),
    currency: currencyCode,
    totalCents: cents("The sum of the lines"),
    lines: Type.Array(priceLine, {
      description: "One line for each field that was released, at the quoted price.",
    }),
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
        operationId: "listPrices",
        summary: "List the price of each field",
        tags: ["kyb"],
        response: {
          200: Type.Object(
            {
              currency: currencyCode,
              fields: Type.Array(
                Type.Object(
                  {
                    name: fieldName,
                    tier: priceTier,
                    cents: cents("The price of the field, however many persons it covers"),
                    naturalPersonPii: Type.Boolean({
                      description:
                        "Whether the field is personal according to the catalogue; of a sole proprietor, every field is.",
                    }),
                    subjectType,
                  },
                  { title: "FieldPrice" },
                ),
                { description: "Every field that has a price." },
              ),
            },
            { title: "Prices", description: "In catalogue order." },
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
        operationId: "getBillingAccount",
        summary: "Get the organization's balance",
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
        operationId: "listCharges",
        summary: "List the charges for releases, line by line",
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

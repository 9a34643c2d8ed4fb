import { Type } from "../../platform/http/schema.ts";

/** A `PriceLine`, as quotes, prices, charges and events show it. */
export const priceLine = Type.Object(
  { field: Type.String(), tier: Type.String(), cents: Type.Integer() },
  { title: "PriceLine" },
);

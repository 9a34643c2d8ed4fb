import { Type } from "../../platform/http/schema.ts";
import { cents, fieldName } from "../member-schemas.ts";

export const priceTier = Type.String({
  description: "`A`, `B` or `C`, which decides the price; fields about natural persons are `C`.",
});

/** The schema of a `PriceLine`. */
export const priceLine = Type.Object(
  {
    field: fieldName,
    tier: priceTier,
    cents: cents("The price of the field, however many persons it covers"),
  },
  { title: "PriceLine" },
);

import { Type } from "../../platform/http/schema.ts";

/** The schema of a `PriceLine`. */
export const priceLine = Type.Object(
  { field: Type.String(), tier: Type.String(), cents: Type.Integer() },
  { title: "PriceLine" },
);

import { listCompanyFields } from "../../credentials/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import type { Business } from "./business.ts";
import type { KybContext } from "../kyb-context.ts";

/** The domain of a business: the host of its verified website; null if it has none. */
export async function findBusinessDomain(
  ctx: Pick<KybContext, "seal" | "clock">,
  db: Queryable,
  { address, environment }: Pick<Business, "address" | "environment">,
): Promise<string | null> {
  const question = {
    environment,
    business: address,
    names: ["BUSINESS_WEBSITE"] as const,
    now: ctx.clock.now(),
  };
  const [website] = await listCompanyFields(ctx, db, question);
  return website === undefined ? null : hostOf(website.value);
}

/** Null for anything but an HTTP URL. */
function hostOf(website: string): string | null {
  const text = /^[a-z]+:\/\//i.test(website) ? website : `https://${website}`;
  if (!URL.canParse(text)) return null;
  const { hostname, protocol } = new URL(text);
  return protocol === "https:" || protocol === "http:" ? hostname : null;
}

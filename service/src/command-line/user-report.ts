import type { Address } from "@svc/protocol";
import { reportTies } from "../accounts/index.ts";
import { reportCredentials } from "../credentials/index.ts";
import { listSeatsOf } from "../kyb/index.ts";
import { listOrdersOf } from "../kyc/index.ts";
import { reportLogins } from "../login/index.ts";
import type { Ctx } from "../platform/context.ts";
import { reportWallets } from "../wallets/index.ts";

/** The length of each list. Retention keeps the lists of a human user far shorter. */
const most = 1000;

/**
 * What all slices store about a user: names and times, never a value or a secret.
 *
 * @returns lists by name, each cut off after {@link most}; `cutOff` names those that are longer
 * @throws {Error} if nothing is stored about the identity
 */
export async function reportUser(ctx: Ctx, user: Address): Promise<Record<string, unknown>> {
  const limit = most + 1;
  const now = ctx.clock.now();
  const { firstLoginAt, ...logins } = await reportLogins(ctx.db, user, { now, limit });
  const lists: Record<string, readonly unknown[]> = {
    ...logins,
    ...(await reportWallets(ctx.db, user, limit)),
    ...(await reportCredentials(ctx, user, limit)),
    orders: (await listOrdersOf(ctx.db, user, { before: null, limit })).map(
      ({ referenceKey, organizationId, clientDomainId, environment, status, ...order }) => ({
        referenceKey,
        organizationId,
        clientDomainId,
        environment,
        status,
        statusAt: order.statusAt,
        failureReason: order.failureReason,
        createdAt: order.createdAt,
        required: order.required,
        optional: order.optional,
        purpose: order.purpose,
        reference: order.reference,
      }),
    ),
    ...(await reportTies(ctx.db, user, limit)),
    businesses: await listSeatsOf(ctx.db, user, limit),
  };
  const entries = Object.entries(lists);
  if (firstLoginAt === null && entries.every(([, list]) => list.length === 0))
    throw new Error("no such user");
  return {
    identity: user,
    firstLoginAt,
    ...Object.fromEntries(entries.map(([name, list]) => [name, list.slice(0, most)])),
    cutOff: entries.filter(([, list]) => list.length > most).map(([name]) => name),
  };
}

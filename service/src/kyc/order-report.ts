import type { Ctx } from "../platform/context.ts";
import { Problem } from "../platform/http/problems.ts";
import { reportStream } from "../webhooks/index.ts";
import { findOrder, listHistory } from "./order-store.ts";

const statusesMax = 100;

/**
 * An order for the operator, with its history and the delivery of its events.
 *
 * @param options as of {@link reportStream}
 * @throws {Problem} order_not_found
 */
export async function reportOrder(
  ctx: Pick<Ctx, "db" | "seal">,
  referenceKey: string,
  options: { withAnswers: boolean },
): Promise<Record<string, unknown>> {
  const order = await findOrder(ctx.db, referenceKey);
  if (order === null) throw new Problem("order_not_found");
  const { id, organizationId, clientDomainId, environment, packageId, user, attempt } = order;
  return {
    referenceKey,
    organizationId,
    clientDomainId,
    environment,
    packageId,
    user,
    fields: order.required,
    optionalFields: order.optional,
    attempt,
    status: order.status,
    failureReason: order.failureReason,
    statusAt: order.statusAt,
    createdAt: order.createdAt,
    scannedAt: order.scannedAt,
    expiresAt: order.expiration,
    mismatches: order.mismatches,
    initiatedTxHash: order.initiatedTxHash,
    confirmTxHash: order.confirmTxHash,
    statuses: (await listHistory(ctx.db, id, statusesMax)).map((entry) => ({
      status: entry.status,
      reachedAt: entry.statusAt,
      failureReason: entry.failureReason,
    })),
    ...(await reportStream(ctx, id, options)),
  };
}

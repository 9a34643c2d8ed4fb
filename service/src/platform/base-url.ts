import { replaceBaseUrl } from "./base-url-store.ts";
import type { Ctx } from "./context.ts";

/**
 * Warns if `BASE_URL` differs from that of the last start of any process. Merchants refuse tokens of another issuer,
 * and wallets give another broker nothing that they collected, so a mistake in one process shows only on their side.
 */
export async function noteBaseUrl({
  db,
  config,
  log,
}: Pick<Ctx, "db" | "config" | "log">): Promise<void> {
  const { baseUrl } = config;
  const before = await replaceBaseUrl(db, baseUrl);
  if (before !== null && before !== baseUrl)
    log.warn({ baseUrl, before }, "BASE_URL is another than at the last start");
}

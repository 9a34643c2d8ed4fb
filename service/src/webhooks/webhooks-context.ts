import type { Ctx } from "../platform/context.ts";

/** What deliveries are made with. */
export interface WebhooksContext extends Ctx {
  /** The keys of packages that sign now, by id; asked once for each batch of deliveries. */
  readonly signingKeys: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}

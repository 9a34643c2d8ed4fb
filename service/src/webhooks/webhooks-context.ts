import type { Ctx } from "../platform/context.ts";

/** What the sender and the jobs of this slice need. */
export interface WebhooksContext extends Ctx {
  /** The present signing keys of packages, by package id; asked once for each batch of deliveries. */
  readonly signingKeys: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
}

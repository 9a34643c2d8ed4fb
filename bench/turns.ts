import type { Cluster } from "./cluster.ts";
import { forEachOf, times } from "./load.ts";
import { type Cost, measure, type Party } from "./party.ts";

/** What one party can be asked for, each a measured batch. */
export interface Turns {
  readonly party: Party;
  logIn(batch: Batch): Promise<LoginCosts>;
  /** Every login of the last batch refreshes once, with rotation. */
  refresh(batch: Batch): Promise<Cost>;
  introspect(batch: Batch): Promise<Cost>;
  readUserinfo(batch: Batch): Promise<Cost>;
  readDiscovery(batch: Batch): Promise<Cost>;
  readKeys(batch: Batch): Promise<Cost>;
}

export interface Batch {
  readonly operations: number;
  readonly concurrency: number;
}

/** The cost of one login by whose part it is. */
export interface LoginCosts {
  /** Authorization request, page, release of the code, token request. */
  readonly login: Cost;
  /** Of it the authorization request and the page. */
  readonly page: Cost;
  /** Claim, request object, verification, approval. The peer has none: its page's own form approves. */
  readonly wallet: Cost | null;
  /** The browser's question after the claim, with the two digits as answer. */
  readonly status: Cost | null;
  readonly pageBytes: number;
}

/** Measures `work` for each of the items. */
export async function measureEach<Item, Result>(
  on: { cluster: Cluster; party: Party; batch: Batch },
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<{ cost: Cost; result: Result[] }> {
  const { concurrency } = on.batch;
  return measure(on.cluster, on.party, {
    operations: items.length,
    work: async () => forEachOf(items, concurrency, work),
  });
}

/** Measures the same work, as often as the batch says. */
export async function measureSame(
  on: { cluster: Cluster; party: Party; batch: Batch },
  work: () => Promise<unknown>,
): Promise<Cost> {
  return (await measureEach(on, times(on.batch.operations), work)).cost;
}

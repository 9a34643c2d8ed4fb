import type { Address } from "@svc/protocol";
import { columns, type Queryable, sql } from "../platform/database/db.ts";

/** The chain of this installation and its contracts, which are null until the first start has deployed them. */
export interface ChainIdentity {
  readonly chainId: number;
  readonly registry: Address | null;
  readonly settlement: Address | null;
  /** Factories of business wallets. */
  readonly live: Address | null;
  readonly sandbox: Address | null;
}

const identityColumns = columns`
  chain_id as "chainId", registry, settlement, live_factory as live, sandbox_factory as sandbox`;

/** Null before the first start. */
export async function findIdentity(db: Queryable): Promise<ChainIdentity | null> {
  const [row] = await db.query<ChainIdentity>(sql`
    select ${identityColumns} from chain_identity`);
  return row ?? null;
}

/** Stores the chain id unless there is one. @returns the stored identity, which may be another process's */
export async function keepIdentity(db: Queryable, chainId: number): Promise<ChainIdentity> {
  const [row] = await db.query<ChainIdentity>(sql`
    with added as (
      insert into chain_identity (chain_id) values (${chainId}) on conflict (single) do nothing returning *),
    one as (select * from added union all select * from chain_identity)
    select ${identityColumns} from one`);
  // Another process added it between the two parts of the statement.
  return row ?? keepIdentity(db, chainId);
}

/** Stores the addresses of those contracts that have none yet. */
export async function keepContracts(
  db: Queryable,
  { registry, settlement, live, sandbox }: Readonly<Record<ContractName, Address>>,
): Promise<void> {
  await db.query(sql`
    update chain_identity set registry = coalesce(registry, ${registry}),
      settlement = coalesce(settlement, ${settlement}),
      live_factory = coalesce(live_factory, ${live}), sandbox_factory = coalesce(sandbox_factory, ${sandbox})
    where registry is null or settlement is null or live_factory is null or sandbox_factory is null`);
}

/** The contracts of an installation; the last two are factories of business wallets. */
export type ContractName = Exclude<keyof ChainIdentity, "chainId">;

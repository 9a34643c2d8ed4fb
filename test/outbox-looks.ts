// How tests of the outbox read its rows and the chain, and let time pass.
import { sql } from "../service/src/platform/database/db.ts";
import type { Anvil } from "./anvil.ts";
import type { SettlingProcess } from "./chain-processes.ts";

/** The contracts that a start deploys take the first nonces. */
export const contractsTotal = 4;

interface Row {
  subject_id: string;
  status: string;
  nonce: number | null;
  forms: number;
}

/** The rows of the outbox, in the order in which they were queued. */
export const rowsOf = async ({ ctx }: SettlingProcess): Promise<Row[]> =>
  ctx.db.query<Row>(sql`
    select subject_id, status, nonce,
      (select count(*) from chain_transaction_hash h where h.transaction_id = t.id) as forms
    from chain_transaction t where kind = 'test.settle' order by id`);

/** How often an alarm was raised. */
export const alarmsOf = async ({ ctx }: SettlingProcess, alarm: string): Promise<number> => {
  const text = await ctx.metrics.registry.getSingleMetricAsString("chain_alarms_total");
  return Number(new RegExp(`alarm="${alarm}"} (\\d+)`).exec(text)?.[1] ?? 0);
};

/** Initiations of the settlement contract that the chain holds. */
export const settledOn = async (anvil: Anvil, process: SettlingProcess): Promise<number> => {
  const filter = { fromBlock: "0x0", address: process.chain.contracts.settlement };
  return (await anvil.rpc<unknown[]>("eth_getLogs", [filter])).length;
};

/**
 * Sends one transaction, and waits until neither it nor the deployment counts towards the day's cap any more.
 *
 * @returns the most that it may cost, in coins
 */
export async function coinsOfOne(
  process: SettlingProcess,
  installation: { advance(seconds: number): void },
): Promise<number> {
  installation.advance(86_400);
  await process.queue("first");
  await process.work();
  const [row] = await process.ctx.db.query<{ cost: number }>(sql`
    select (gas_limit * max_fee_wei)::float8 as cost from chain_transaction where subject_id = 'first'`);
  installation.advance(86_400);
  return (row?.cost ?? 0) / 1e18;
}

/** Runs the outbox as often as necessary, with a block after each run. */
export async function settle(
  anvil: Anvil,
  installation: { advance(seconds: number): void },
  processes: readonly SettlingProcess[],
): Promise<void> {
  for (let block = 0; block < 16; block += 1) {
    await anvil.mine();
    installation.advance(4);
    for (const process of processes) await process.work();
  }
}

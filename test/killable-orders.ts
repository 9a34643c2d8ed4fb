// A world with orders whose service runs in processes that a test may kill. The world's own process makes everything
// ready and then goes, so that nobody but those processes does anything.
import assert from "node:assert/strict";
import type { OpenContext } from "../service/src/compose.ts";
import { advanceClock } from "../service/src/platform/clock.ts";
import { openContextOf } from "./embedded-chain.ts";
import { openKycWorld, type Person } from "./kyc-world.ts";
import type { OrderEvidence } from "./order-invariants.ts";
import { type Asked, openTraffic, type Traffic } from "./order-traffic.ts";
import type { ServerProcess } from "./world.ts";

export interface KillableOrders extends AsyncDisposable {
  /** Beside the processes, on the same database. */
  readonly ctx: OpenContext;
  readonly traffic: Traffic;
  /** Every person with every package. */
  readonly asked: readonly Asked[];
  readonly evidence: OrderEvidence;
  /** A process under the service's own address; it ends with the world at the latest. */
  startMain(): Promise<ServerProcess>;
  /** Another one; merchants call this one too. */
  startOther(): Promise<ServerProcess>;
  advance(seconds: number): Promise<void>;
}

/** What the connections of our processes are called in the database. */
export const processName = "svc-under-test";

export async function openKillableOrders(
  given: { persons: number; packages: number },
  environment: NodeJS.ProcessEnv = {},
): Promise<KillableOrders> {
  await using stack = new AsyncDisposableStack();
  const world = stack.use(await openKycWorld(environment));
  const { baseUrl, apiKey } = world;
  const persons: Person[] = [world.person];
  while (persons.length < given.persons) persons.push(await world.verify());
  const packages = [world.dynamic];
  while (packages.length < given.packages) packages.push(await world.buy());
  const { settlement } = world.ctx.chain.contracts;
  const { databaseUrl } = world.ctx.config;
  await world.service.close();
  assert.ok(databaseUrl !== null);
  const ctx = stack.use(await openContextOf(databaseUrl));
  let other: ServerProcess | null = null;
  let calls = 0;
  const target = {
    apiKey,
    ctx,
    baseUrl: () => {
      calls += 1;
      return calls % 2 === 0 && other !== null ? other.url : baseUrl;
    },
  };
  const traffic = stack.use(await openTraffic(target));
  const settings = { PGAPPNAME: processName };
  const opened = stack.move();
  return {
    ctx,
    traffic,
    asked: persons.flatMap((person) =>
      packages.map(({ sourceKey }): Asked => ({ person, sourceKey })),
    ),
    evidence: {
      ctx,
      settlement,
      acknowledged: traffic.acknowledged,
      received: traffic.received,
      rpc: async (method, params) => askChain(`${baseUrl}/w/chain`, method, params),
    },
    startMain: async () =>
      opened.use(await world.startProcess(settings, { port: Number(new URL(baseUrl).port) })),
    async startOther() {
      other = opened.use(await world.startProcess(settings));
      return other;
    },
    async advance(seconds) {
      await advanceClock(ctx.db, seconds);
      await ctx.clock.refresh();
    },
    [Symbol.asyncDispose]: async () => opened.disposeAsync(),
  };
}

async function askChain(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const body = (await answer.json()) as { result?: unknown };
  assert.ok("result" in body, JSON.stringify(body));
  return body.result;
}

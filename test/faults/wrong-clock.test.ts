// A process on a machine whose clock is wrong leaves alone what others decide by the right one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { openKycWorld } from "../kyc-world.ts";
import { authorizationUrl, logIn, makePkce, postToken, type Tokens } from "../login-flow.ts";
import { until } from "../patience.ts";
import { newIdentity } from "../raw-wallet.ts";
import { openWorld, type ServerProcess, untilTime } from "../world.ts";

/** `NODE_OPTIONS` of a process whose machine is ahead. */
const aheadBy = (ms: number): string =>
  `--import=data:text/javascript,const%20now=Date.now;Date.now=()=>now()+${ms}`;

test("a process whose clock is 90 days ahead decides nothing by it", async (t) => {
  await using world = await openKycWorld({
    LIMIT_LOOPBACK: "true",
    LIMIT_LOGINS_PER_ADDRESS_MINUTE: "20",
  });
  const { db } = world.ctx;
  const asked = await world.ask();
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const keys = sql`select kid, starts_at from signing_key order by kid`;
  const before = await db.query(keys);
  const waiting = Promise.withResolvers<void>();
  const environment = { NODE_OPTIONS: aheadBy(90 * 86_400_000), LOG_LEVEL: "error" };
  await using ahead = await world.startProcess(environment, {
    onLine: (line) => {
      if (line.includes("jobs wait")) waiting.resolve();
    },
  });

  await t.test("it is not ready, runs no job and ends no key", async () => {
    assert.equal((await fetch(`${ahead.url}/health/ready`)).status, 503);
    await waiting.promise;
    assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
    assert.deepEqual(await db.query(keys), before);
  });

  await t.test(
    "a call there takes one from its caller's limit, not those of the next hours",
    async () => {
      const begin = async (baseUrl: string): Promise<number> => {
        const client = { ...world.client, id: "unknown" };
        return (await fetch(authorizationUrl(baseUrl, client, makePkce()))).status;
      };
      const first = await begin(ahead.url);
      const statuses: number[] = [];
      while (statuses.at(-1) !== 429) statuses.push(await begin(world.baseUrl));
      await world.advance(30);
      const later = await Promise.all(Array.from({ length: 9 }, async () => begin(world.baseUrl)));
      assert.deepEqual(
        [first, new Set(statuses.slice(0, -1)), new Set(later)],
        [400, new Set([400]), new Set([400])],
      );
    },
  );
});

test("a refresh that is repeated within its grace gets the same successor from a process whose clock is seconds ahead", async () => {
  await using world = await openWorld();
  const apart = { late: aheadBy(-1900), early: aheadBy(1900) };
  await using late = await world.startProcess({ NODE_OPTIONS: apart.late });
  await using early = await world.startProcess({ NODE_OPTIONS: apart.early });
  for (const each of [late, early]) await untilTime(each, 0);
  const advance = async (seconds: number): Promise<void> => {
    await world.advance(seconds);
    await untilTime(late, world.ctx.clock.now() - 3);
    await untilTime(early, world.ctx.clock.now());
  };
  /** @returns null if the machine stalled until the grace was over, which it is after ten seconds */
  const repeatAt = async (first: ServerProcess, second: ServerProcess): Promise<true | null> => {
    const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
    const refresh = async ({ url }: ServerProcess): Promise<Response> =>
      postToken(url, world.client, {
        grant_type: "refresh_token",
        refresh_token: tokens.refresh_token ?? "",
      });
    const beganMs = performance.now();
    const once = (await (await refresh(first)).json()) as Tokens;
    await advance(7);
    const twice = await refresh(second);
    if (twice.status !== 200 && performance.now() - beganMs > 3_000) return null;
    assert.equal(twice.status, 200);
    assert.equal(((await twice.json()) as Tokens).refresh_token, once.refresh_token);
    await advance(4);
    assert.equal((await refresh(second)).status, 400, "the grace is over for both");
    return true;
  };
  await until("a repeat in time", async () => repeatAt(late, early));
  await until("a repeat in time", async () => repeatAt(early, late));
});

// Processes that die while they deliver webhooks: every event arrives, as it was announced.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { buyPackage } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { enqueueEvents, newEventId, type NewEvent } from "../../service/src/webhooks/index.ts";
import { openWorld } from "../world.ts";
import { until } from "../patience.ts";

const killsTotal = 3;
const streamsPerRound = 20;
const eventsPerStream = 3;

test(`${killsTotal} kills of one of two processes that deliver lose no event, and no stream its order`, async () => {
  await using world = await openWorld();
  const { ctx, clientDomainId } = world;
  const order = { clientDomainId, name: "P", fields: null, transfers: 1, priceRappen: 0n };
  const { kycPackage } = await buyPackage(ctx, order, "test");
  const firsts: string[] = [];
  const bodies = new Map<string, Set<string>>();
  let onRequest: (() => void) | null = null;
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const id = String(request.headers["svc-event-id"]);
      if (!bodies.has(id)) firsts.push(id);
      bodies.set(id, (bodies.get(id) ?? new Set()).add(Buffer.concat(chunks).toString()));
      onRequest?.();
      // Long enough for a kill to come between the request and its answer.
      setTimeout(() => response.end(), 5);
    });
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  await using _ = {
    async [Symbol.asyncDispose]() {
      receiver.closeAllConnections();
      receiver.close();
    },
  };
  const { port } = receiver.address() as AddressInfo;
  const announced: NewEvent[] = [];
  const announce = async (streams: number): Promise<void> => {
    const events = Array.from({ length: streams }, (_each, index) => {
      const streamId = randomUUID();
      return Array.from({ length: eventsPerStream }, (_event, at): NewEvent => {
        const id = newEventId(ctx);
        return {
          id,
          streamId,
          sequence: at + 1,
          kind: "status.updated",
          channel: "kyc",
          clientDomainId,
          keyId: kycPackage.id,
          url: `http://127.0.0.1:${port}/${index}`,
          body: JSON.stringify({ event_id: id, sequence: at + 1 }),
          isPersonal: false,
          payloadExpiresAt: null,
        };
      });
    }).flat();
    announced.push(...events);
    await ctx.db.transaction(async (tx) => enqueueEvents(ctx, tx, events));
  };
  for (let kill = 0; kill < killsTotal; kill += 1) {
    await using process = await world.startProcess();
    let left = streamsPerRound;
    const isBusy = new Promise<void>((resolve) => {
      onRequest = () => {
        left -= 1;
        if (left === 0) resolve();
      };
    });
    await announce(streamsPerRound);
    await isBusy;
    await process.kill();
  }
  // The leases of the dead end.
  await world.advance(31);
  await until("everything is delivered", async () => {
    const [row] = await ctx.db.query<{ open: number }>(sql`
      select count(*) as open from webhook_event where delivered_at is null`);
    return row?.open === 0 ? true : null;
  });
  assert.equal(bodies.size, announced.length);
  for (const event of announced) assert.deepEqual([...(bodies.get(event.id) ?? [])], [event.body]);
  for (const [, events] of Map.groupBy(announced, ({ streamId }) => streamId)) {
    const places = events.map(({ id }) => firsts.indexOf(id));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
  }
});

// What a merchant lists of its requests for company data, and that one which ended stands in no other's way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setEntitlement } from "../../service/src/accounts/index.ts";
import type { Queryable } from "../../service/src/platform/database/db.ts";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";

await using world = await openDataWorld();
const { ctx } = world;

async function cancel(id: string): Promise<void> {
  const { status } = await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
  assert.equal(status, 200);
}

async function ask(): Promise<string> {
  const { status, body } = await world.ask();
  assert.equal(status, 201, JSON.stringify(body));
  return String(body["requestId"]);
}

/** The ids of each page. */
async function list(query: string): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor = ""; pages.length < 10;) {
    const { body } = await world.call("GET", `${requestsPath}?${query}${cursor}`);
    const { items, nextCursor } = body as { items: { requestId: string }[]; nextCursor?: string };
    pages.push(items.map(({ requestId }) => requestId));
    if (nextCursor === undefined) break;
    cursor = `&cursor=${nextCursor}`;
  }
  return pages;
}

await test("data requests are listed newest first, page by page, of one status where asked", async () => {
  const cancelled: string[] = [];
  for (let count = 1; count <= 2; count += 1) {
    const id = await ask();
    await cancel(id);
    cancelled.unshift(id);
  }
  const open = await ask();
  const [second = "", first = ""] = cancelled;
  assert.deepEqual(await list("limit=2"), [[open, second], [first]]);
  assert.deepEqual(await list("limit=1&status=cancelled"), [[second], [first]]);
  assert.deepEqual(await list("status=pending_approval"), [[open]]);
  await cancel(open);
});

await test("a list tells of no request that waits after its time, before a job has ended it", async (t) => {
  const id = await ask();
  const { body } = await world.call("GET", `${requestsPath}/${id}`);
  const clock = t.mock.method(ctx.clock, "now", () => Number(body["expiresAt"]));
  assert.deepEqual(await list("status=pending_approval"), [[id]], "in its last second");
  clock.mock.mockImplementation(() => Number(body["expiresAt"]) + 1);
  const listed = await Promise.all([list("status=pending_approval"), list("status=refused")]);
  clock.mock.restore();
  assert.deepEqual(listed, [[[]], [[id]]]);
});

await test("a request is made where the one that stood in its way ends before it is named", async (t) => {
  const open = await ask();
  const begin = ctx.db.transaction.bind(ctx.db);
  t.mock.method(ctx.db, "transaction", async <T>(work: (tx: Queryable) => Promise<T>) =>
    begin(async (tx) =>
      work({
        async query(statement) {
          if (statement.text.includes("select id from data_request")) await cancel(open);
          return tx.query(statement);
        },
      }),
    ),
  );
  const made = await ask();
  assert.deepEqual(await list("status=pending_approval"), [[made]]);
});

await test("events of data requests are listed only for keys that may make such requests", async () => {
  const countEvents = async (): Promise<number> => {
    const { body } = await world.call("GET", "/api/v1/kyb/events");
    const items = body["items"] as { event: string }[];
    return items.filter(({ event }) => event.startsWith("kyb.data_request.")).length;
  };
  assert.ok((await countEvents()) > 0);
  const { organizationId } = world;
  const withdrawn = { organizationId, entitlement: "kyb:data-request", isGranted: false };
  await setEntitlement(ctx, withdrawn, "test");
  await world.until("none is listed", async () => ((await countEvents()) === 0 ? true : null));
});

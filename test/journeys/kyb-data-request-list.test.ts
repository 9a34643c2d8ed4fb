// What a merchant lists of its requests for company data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";

await using world = await openDataWorld();

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
    const { status } = await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
    assert.equal(status, 200);
    cancelled.unshift(id);
  }
  const open = await ask();
  const [second = "", first = ""] = cancelled;
  assert.deepEqual(await list("limit=2"), [[open, second], [first]]);
  assert.deepEqual(await list("limit=1&status=cancelled"), [[second], [first]]);
  assert.deepEqual(await list("status=pending_approval"), [[open]]);
});

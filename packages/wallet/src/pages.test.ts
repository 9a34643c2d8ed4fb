import assert from "node:assert/strict";
import { test } from "node:test";
import { refuses } from "../test/test-wallet.ts";
import { readPages } from "./pages.ts";
import type { WalletSessions } from "./sessions.ts";

const list = ["https://id.example", { path: "/w/list" }] as const;

/** Reads four pages. @returns how many items came */
async function readFour(
  seconds: { perCall: number; perPage: number },
  cursorOf: (page: number) => string = String,
): Promise<number> {
  let at = 0;
  let page = 0;
  const ask: WalletSessions["ask"] = async () => {
    at += seconds.perCall;
    page += 1;
    const nextCursor = page < 4 ? cursorOf(page) : null;
    return Promise.resolve({ status: 200, text: JSON.stringify({ items: [page], nextCursor }) });
  };
  const sessions: WalletSessions = { call: ask, ask, close: async () => undefined };
  let count = 0;
  for await (const { items } of readPages({ now: async () => at, sessions }, ...list)) {
    count += items.length;
    at += seconds.perPage;
  }
  return count;
}

await test("a list is read for a minute of its broker's time, however long its pages are worked on", async () => {
  assert.equal(await readFour({ perCall: 14, perPage: 3600 }), 4);
  await refuses(
    readFour({ perCall: 31, perPage: 0 }),
    "unreachable",
    /takes too long to send a list/,
  );
});

await test("a list whose next page no address can name is none", async () => {
  const seconds = { perCall: 1, perPage: 0 };
  await refuses(
    readFour(seconds, () => "\ud800"),
    "broker_refused",
    /an invalid list/,
  );
});

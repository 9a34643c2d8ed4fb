// The same requests to oidc-provider and to this service: the same class of answer, or a written reason.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { oraclePage, writeOraclePage } from "./document.ts";
import { openOurselves } from "./ourselves.ts";
import { outcomeOf } from "./outcome.ts";
import { openPeer } from "./peer.ts";
import type { Row } from "./row.ts";
import { table } from "./table.ts";

const peer = await openPeer();
const ourselves = await openOurselves();
after(async () => {
  await ourselves[Symbol.asyncDispose]();
  await peer[Symbol.asyncDispose]();
});

for (const { title, to, rows } of table) {
  void test(`${title}: oidc-provider answers every row as the table says`, async () => {
    const found = await mapRows(rows, async (row) => outcomeOf(peer, row, to));
    assert.deepEqual(found, await mapRows(rows, ({ theirs }) => theirs));
  });
  void test(`${title}: the service answers as oidc-provider does, or as the row's reason says`, async () => {
    const found = await mapRows(rows, async (row) => outcomeOf(ourselves, row, to));
    assert.deepEqual(found, await mapRows(rows, ({ theirs, ours }) => ours ?? theirs));
  });
}

void test("a row gives a reason exactly where its outcomes differ", () => {
  const faulty = table.flatMap(({ title, rows }) =>
    rows
      .filter(({ theirs, ours, reason }) =>
        ours === undefined ? reason !== undefined : ours === theirs || (reason ?? "") === "",
      )
      .map(({ name }) => `${title}: ${name}`),
  );
  assert.deepEqual(faulty, []);
});

void test("the table asks at least 60 requests about authorization and tokens, each once", () => {
  const asked = table.flatMap(({ title, to, rows }) =>
    rows.map(({ name }) => ({ to, id: `${title}: ${name}` })),
  );
  const counted = new Set(["authorize", "push", "code", "refresh", "machine"]);
  assert.ok(asked.filter(({ to }) => counted.has(to)).length >= 60);
  assert.equal(new Set(asked.map(({ id }) => id)).size, asked.length, "two rows have one name");
});

void test("the page about the oracle says what the table says", () => {
  const remedy = "run node --conditions=source test/oracle/document.ts";
  assert.equal(readFileSync(oraclePage, "utf8"), writeOraclePage(), remedy);
});

/** Runs one row after the other, so that a failure concerns one row only. */
async function mapRows(
  rows: readonly Row[],
  work: (row: Row) => string | Promise<string>,
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const row of rows) found[row.name] = await work(row);
  return found;
}

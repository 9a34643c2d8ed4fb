// How often a request to a business, and a vote on it, ask the database: never twice for the same.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Db, Queryable } from "../../service/src/platform/database/db.ts";
import { openDataWorld } from "../kyb-data-world.ts";

await using world = await openDataWorld();
const { db } = world.ctx;

/** Records the statements of each transaction from now on. */
function recordTransactions(t: TestContext): string[][] {
  const transactions: string[][] = [];
  const transaction = db.transaction.bind(db);
  t.mock.method(db, "transaction", (async (work) =>
    transaction(async (tx) => {
      const texts: string[] = [];
      transactions.push(texts);
      const query: Queryable["query"] = async (statement) => {
        texts.push(statement.text);
        return tx.query(statement);
      };
      return work({ query });
    })) satisfies Db["transaction"]);
  return transactions;
}

await test("a request is made with 12 statements, and a vote that decides nothing takes 5", async (t) => {
  const transactions = recordTransactions(t);
  /** The number of statements in the transaction that contains this one. */
  const countWith = (part: string): number[] =>
    transactions
      .filter((texts) => texts.some((text) => text.includes(part)))
      .map(({ length }) => length);
  const { status, body } = await world.ask();
  assert.equal(status, 201);
  const vote = await world.voteAs("bob", String(body["requestId"]), { vote: "reject" });
  assert.equal(vote.body["status"], "open");
  assert.deepEqual(countWith("insert into data_request"), [12]);
  assert.deepEqual(countWith("insert into ballot_vote"), [5]);
});

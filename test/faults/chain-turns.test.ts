// Transactions of one kind that wait without end must not hold up the other kinds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { startAnvil } from "../anvil.ts";
import { openInstallation, type SettlingProcess } from "../chain-processes.ts";
import { coinsOfOne } from "../outbox-looks.ts";

/** More than one run of the outbox reads. */
const many = 40;

async function queueFoundings(process: SettlingProcess): Promise<void> {
  for (let at = 0; at < many; at += 1)
    await process.queue(`founding ${at}`, { kind: "business.create" });
}

/** How many of a kind were sent. */
async function sentOf({ ctx }: SettlingProcess, kind: string): Promise<number> {
  const rows = await ctx.db.query(
    sql`select from chain_transaction where kind = ${kind} and status <> 'queued'`,
  );
  return rows.length;
}

test("what nobody pays for and has no room in the day's cap keeps nothing else waiting, however much it is", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using rich = await installation.openProcess();
  const cap = 1.5 * (await coinsOfOne(rich, installation));
  await using process = await installation.openProcess({ CHAIN_SPEND_CAP: cap.toFixed(9) });
  await queueFoundings(process);
  await process.queue("settlement");
  await process.work();
  assert.deepEqual(
    [await sentOf(process, "business.create"), await sentOf(process, "test.settle")],
    [0, 2],
  );
});

test("what nobody pays for has one turn together, and each other kind one: none waits for all of another", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await queueFoundings(process);
  for (let at = 0; at < many; at += 1)
    await process.queue(`recording ${at}`, { kind: "business.record" });
  for (let at = 0; at < many; at += 1)
    await process.queue(`attestation ${at}`, { kind: "credential.attest" });
  await process.queue("settlement");
  await process.work();
  const kinds = ["business.create", "credential.attest", "business.record", "test.settle"];
  const sent = await Promise.all(kinds.map(async (kind) => sentOf(process, kind)));
  assert.deepEqual(sent, [14, 0, 13, 1], "32 less the contracts' own, since nothing was mined");
});

// What chains do to transactions, and what nobody notices of it afterwards.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfPrivateKey } from "@svc/protocol";
import { privateKeyToAccount } from "viem/accounts";
import { readerOf } from "../chain-reader.ts";
import { NodeAway } from "../../service/src/chain/node.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openGate, startAnvil } from "../anvil.ts";
import {
  alarmsOf,
  coinsOfOne,
  contractsTotal,
  rowsOf,
  settle,
  settledOn,
} from "../outbox-looks.ts";
import { fundedKey, openInstallation, type SettlingProcess } from "../chain-processes.ts";

/** All signed forms of a transaction, the oldest first. */
const bytesOf = async ({ ctx }: SettlingProcess, subjectId: string): Promise<string[]> => {
  const rows = await ctx.db.query<{ raw: string }>(sql`
    select '0x' || encode(raw, 'hex') as raw from chain_transaction_hash h
    join chain_transaction t on t.id = h.transaction_id
    where subject_id = ${subjectId} order by h.signed_at, h.nonce`);
  return rows.map((row) => row.raw);
};

test("a transaction is announced once, twelve blocks deep", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.mine();
  for (let deep = 1; deep < 12; deep += 1) {
    installation.advance(4);
    await process.work();
    assert.equal(process.done.length, 0, `${deep} blocks`);
    await anvil.mine();
  }
  installation.advance(4);
  await process.work();
  assert.deepEqual(
    process.done.map(({ subjectId, status }) => [subjectId, status]),
    [["a", "succeeded"]],
  );
  const [done] = process.done;
  assert.ok(done);
  const receipt = await readerOf(process.chain).getTransactionReceipt({ hash: done.hash });
  const block = await readerOf(process.chain).getBlock({ blockHash: receipt.blockHash });
  assert.equal(Number(receipt.blockNumber), done.blockNumber);
  assert.equal(Number(block.timestamp), done.blockTime);
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 1);
});

test("a reorganisation of any depth from 1 to 11 loses no transaction and doubles none", async (t) => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  for (let depth = 1; depth <= 11; depth += 1)
    await t.test(`of depth ${depth}`, async () => {
      const before = await settledOn(anvil, process);
      process.done.length = 0;
      await process.queue(`a${depth}`);
      await process.queue(`b${depth}`);
      await process.work();
      await anvil.mine(depth);
      installation.advance(4);
      await process.work();
      assert.equal(await settledOn(anvil, process), before + 2);
      await anvil.reorganise(depth);
      assert.equal(await settledOn(anvil, process), before);
      assert.equal(process.done.length, 0);
      await settle(anvil, installation, [process]);
      const subjects = process.done.map((each) => each.subjectId);
      assert.deepEqual(subjects.toSorted(), [`a${depth}`, `b${depth}`]);
      assert.equal(await settledOn(anvil, process), before + 2);
      for (const done of process.done) {
        const { blockNumber } = await readerOf(process.chain).getTransactionReceipt(done);
        assert.equal(Number(blockNumber), done.blockNumber);
      }
    });
});

test("what a reorganisation deeper than the confirmations took back is handed over again", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, { CONFIRMATIONS: "2" });
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.mine(2);
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 1);
  await anvil.reorganise(3);
  assert.equal(await settledOn(anvil, process), 0);
  await process.queue("b");
  await settle(anvil, installation, [process]);
  assert.equal(await settledOn(anvil, process), 2);
  assert.deepEqual(
    process.done.map((each) => each.subjectId),
    ["a", "b"],
  );
  assert.equal(await alarmsOf(process, "deep_reorganisation"), 1);
});

test("a transaction that the node dropped is handed over again with the same bytes", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.rpc("anvil_dropAllTransactions");
  await anvil.mine(20);
  installation.advance(14);
  await process.work();
  await anvil.mine();
  assert.equal(await settledOn(anvil, process), 0);
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 1);
  assert.deepEqual(await rowsOf(process), [
    { subject_id: "a", status: "succeeded", nonce: contractsTotal, forms: 1 },
  ]);
});

test("a transaction that waits for a minute is outbid under its nonce, and either form may be mined", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.queue("b");
  await process.work();
  installation.advance(60);
  await process.work();
  assert.deepEqual(
    (await rowsOf(process)).map((row) => [row.nonce, row.forms]),
    [
      [contractsTotal, 2],
      [contractsTotal + 1, 2],
    ],
  );
  const spent = await process.ctx.db.query(sql`
    select spent_wei = (select sum(gas_limit * max_fee_wei) from chain_transaction) as "isCounted" from chain_signer`);
  assert.deepEqual(spent, [{ isCounted: true }]);
  // For `b` the older form is mined after all.
  await anvil.rpc("anvil_dropAllTransactions");
  const [newer, older] = [(await bytesOf(process, "a"))[1], (await bytesOf(process, "b"))[0]];
  await anvil.rpc("eth_sendRawTransaction", [newer]);
  await anvil.rpc("eth_sendRawTransaction", [older]);
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 2);
  assert.equal(await settledOn(anvil, process), 2);
  const bytes = await Promise.all(
    process.done.map(async ({ hash }) => anvil.rpc("eth_getRawTransactionByHash", [hash])),
  );
  assert.deepEqual(new Set(bytes), new Set([newer, older]));
});

test("a nonce that somebody else used is given up only when that is final", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.queue("b");
  await process.work();
  await anvil.rpc("anvil_dropAllTransactions");
  const account = privateKeyToAccount(`0x${fundedKey}`);
  const foreign = await account.signTransaction({
    type: "eip1559",
    chainId: anvil.chainId,
    nonce: contractsTotal,
    to: account.address,
    gas: 21_000n,
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 10n,
  });
  await anvil.rpc("eth_sendRawTransaction", [foreign]);
  await anvil.mine();
  for (let block = 1; block < 12; block += 1) {
    installation.advance(4);
    await process.work();
    assert.equal((await rowsOf(process))[0]?.nonce, contractsTotal, `${block} blocks deep`);
    await anvil.mine();
  }
  await settle(anvil, installation, [process]);
  await settle(anvil, installation, [process]);
  assert.deepEqual(process.done.map((each) => each.subjectId).toSorted(), ["a", "b"]);
  assert.equal(await settledOn(anvil, process), 2);
  assert.deepEqual(
    (await rowsOf(process)).map((row) => row.nonce),
    [contractsTotal + 2, contractsTotal + 1],
  );
  assert.equal(await alarmsOf(process, "nonce_taken"), 1);
});

test("out of funds, everything waits with an alarm and goes on when there are some", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  const balance = await anvil.rpc("eth_getBalance", [process.chain.operator, "latest"]);
  await anvil.setAutomine(false);
  await process.queue("signed");
  await process.work();
  await anvil.rpc("anvil_dropAllTransactions");
  await anvil.rpc("anvil_setBalance", [process.chain.operator, "0x1"]);
  await process.queue("unsigned");
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 0);
  assert.ok((await alarmsOf(process, "out_of_funds")) > 0);
  await anvil.rpc("anvil_setBalance", [process.chain.operator, balance]);
  await settle(anvil, installation, [process]);
  await settle(anvil, installation, [process]);
  assert.deepEqual(process.done.map((each) => each.subjectId).toSorted(), ["signed", "unsigned"]);
  assert.equal(await settledOn(anvil, process), 2);
});

test("what the account cannot pay is not outbid, however long it waits", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.rpc("anvil_dropAllTransactions");
  await anvil.rpc("anvil_setBalance", [process.chain.operator, "0x1"]);
  for (let minute = 0; minute < 30; minute += 1) {
    installation.advance(60);
    await process.work().catch((error: unknown) => assert.ok(error instanceof NodeAway));
  }
  assert.ok((await alarmsOf(process, "out_of_funds")) > 0);
  const [row] = await process.ctx.db.query<{ cost: string; forms: number }>(sql`
    select (gas_limit * max_fee_wei)::text as cost,
      (select count(*) from chain_transaction_hash h where h.transaction_id = t.id) as forms
    from chain_transaction t where subject_id = 'a'`);
  assert.equal(row?.forms, 1);
  const enough = `0x${BigInt(row.cost).toString(16)}`;
  await anvil.rpc("anvil_setBalance", [process.chain.operator, enough]);
  installation.advance(4);
  await process.work();
  assert.deepEqual(await anvil.rpc("txpool_status"), { pending: "0x1", queued: "0x0" });
});

test("above the day's cap nothing is signed until the next day", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using rich = await installation.openProcess();
  await using poor = await installation.openProcess({ CHAIN_SPEND_CAP: "0.000000001" });
  await poor.queue("a");
  await poor.work();
  assert.deepEqual(
    (await rowsOf(poor)).map((row) => row.status),
    ["queued"],
  );
  assert.equal(await alarmsOf(poor, "spend_cap"), 1);
  installation.advance(60);
  await rich.work();
  assert.deepEqual(
    (await rowsOf(poor)).map((row) => row.status),
    ["sent"],
  );
});

test("a transaction that costs more than the day's cap keeps no cheaper one waiting", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using rich = await installation.openProcess();
  // A day later the deployment no longer counts towards the day's cap.
  installation.advance(86_400);
  await using process = await installation.openProcess({ CHAIN_SPEND_CAP: "0.002" });
  const nonces = async (): Promise<unknown> =>
    (await rowsOf(process)).map((row) => [row.subject_id, row.nonce]);
  await process.queue("large", { extraBytes: 60_000 });
  await process.queue("small");
  await process.work();
  assert.deepEqual(await nonces(), [
    ["large", null],
    ["small", contractsTotal],
  ]);
  assert.equal(await alarmsOf(process, "cost_above_cap"), 1);
  installation.advance(60);
  await process.queue("later");
  await process.work();
  assert.deepEqual(await nonces(), [
    ["large", null],
    ["small", contractsTotal],
    ["later", contractsTotal + 1],
  ]);
  installation.advance(60);
  await rich.work();
  await settle(anvil, installation, [rich]);
  assert.equal(await settledOn(anvil, rich), 3);
});

test("what nobody pays for leaves half of the day's cap to the rest, and has as much where there is room", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using rich = await installation.openProcess();
  const cap = 4.5 * (await coinsOfOne(rich, installation));
  await using process = await installation.openProcess({ CHAIN_SPEND_CAP: cap.toFixed(9) });
  for (const kind of ["business.create", "credential.attest", "credential.revoke"])
    await process.queue(kind, { kind });
  await process.work();
  for (const subjectId of ["d", "e"]) await process.queue(subjectId);
  await process.work();
  const rows = await process.ctx.db.query<{ kind: string; status: string }>(sql`
    select kind, status from chain_transaction
    where subject_id in ('d', 'e') or subject_id = kind order by kind, status`);
  assert.deepEqual(
    rows.map(({ kind, status }) => `${kind} ${status}`),
    [
      "business.create sent",
      "credential.attest sent",
      "credential.revoke queued",
      "test.settle sent",
      "test.settle sent",
    ],
  );
  assert.equal(await alarmsOf(process, "spend_cap"), 1);
  // What is paid for takes nothing of that half either, as long as there is room.
  installation.advance(86_400);
  await process.work();
  for (const subjectId of ["f", "g"]) await process.queue(subjectId);
  await process.work();
  await process.queue("late", { kind: "credential.attest" });
  await process.work();
  const sent = await process.ctx.db.query<{ subject_id: string }>(sql`
    select subject_id from chain_transaction
    where subject_id in ('credential.revoke', 'f', 'g', 'late') and status <> 'queued' order by id`);
  assert.deepEqual(
    sent.map((each) => each.subject_id),
    ["credential.revoke", "f", "g", "late"],
  );
});

test("a transaction that would revert is sent after five refusals, whichever process gets them, and announced once that is final", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await using other = await installation.openProcess();
  const { ctx, chain } = process;
  const { enqueueTransaction } = await import("../../service/src/chain/index.ts");
  const call = {
    kind: "test.settle",
    subjectId: "a",
    to: chain.contracts.settlement,
    data: "0xdeadbeef" as const,
  };
  const id = await ctx.db.transaction(async (tx) => enqueueTransaction(ctx, tx, call));
  for (let pause = 0; pause < 5; pause += 1) {
    const both = Promise.withResolvers<void>();
    let asking = 0;
    const request: typeof chain.node.request = async (method, params) => {
      if (method === "eth_estimateGas") {
        asking += 1;
        if (asking === 2) both.resolve();
        await both.promise;
      }
      return chain.node.request(method, params);
    };
    await Promise.all([process.workWith({ request }), other.workWith({ request })]);
    assert.equal((await rowsOf(process))[0]?.status, "queued", "the chain says it would revert");
    installation.advance(16);
  }
  await process.work();
  assert.equal((await rowsOf(process))[0]?.status, "sent");
  await settle(anvil, installation, [process]);
  assert.deepEqual(
    process.done.map((each) => [each.id, each.status]),
    [[id, "reverted"]],
  );
});

test("processes that start together on a new chain deploy the contracts once", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  const processes = await Promise.all([1, 2, 3].map(async () => installation.openProcess()));
  const [one, two] = processes.map((each) => each.chain.contracts);
  assert.deepEqual(one, two);
  assert.equal(
    await anvil.rpc("eth_getTransactionCount", [processes[0]?.chain.operator, "latest"]),
    `0x${contractsTotal}`,
  );
  for (const process of processes) await process[Symbol.asyncDispose]();
  await using again = await installation.openProcess({ CONTRACT_SALT: `0x${"5".repeat(64)}` });
  assert.deepEqual(again.chain.contracts, one, "a later salt moves nothing");
});

test("two processes with one signer leave no gap and no double", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using one = await installation.openProcess();
  await using two = await installation.openProcess();
  // Anvil loses transactions that arrive while it mines by itself, and those would wait to be outbid.
  await anvil.setAutomine(false);
  const subjects = Array.from({ length: 100 }, (_, at) => `s${at}`);
  await Promise.all(subjects.map(async (subject, at) => (at % 2 === 0 ? one : two).queue(subject)));
  for (let round = 0; round < 12; round += 1) {
    await Promise.all([one.work(), two.work(), one.work(), two.work()]);
    await anvil.mine(12);
    installation.advance(4);
  }
  const rows = await rowsOf(one);
  assert.deepEqual(
    rows.map((row) => row.nonce).toSorted((a, b) => Number(a) - Number(b)),
    subjects.map((_, at) => at + contractsTotal),
  );
  assert.ok(rows.every((row) => row.status === "succeeded" && row.forms === 1));
  assert.deepEqual(
    [...one.done, ...two.done].map((each) => each.subjectId).toSorted(),
    subjects.toSorted(),
  );
  assert.equal(await settledOn(anvil, one), 100);
});

test("what was stored and not sent when its process died is sent by another, unchanged", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using killed = await installation.openProcess();
  await using other = await installation.openProcess();
  await killed.queue("a");
  await killed.workWith({
    submit: async () => {
      throw new NodeAway("the process ended here");
    },
  });
  const stored = await bytesOf(killed, "a");
  assert.equal(stored.length, 1);
  assert.equal(await settledOn(anvil, other), 0);
  await settle(anvil, installation, [other]);
  await settle(anvil, installation, [other]);
  assert.equal(other.done.length, 1);
  const [done] = other.done;
  assert.deepEqual([await anvil.rpc("eth_getRawTransactionByHash", [done?.hash])], stored);
});

test("a transaction is queued with what needs it or not at all, and once for a subject", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  const { ctx, chain } = process;
  const { enqueueTransaction } = await import("../../service/src/chain/index.ts");
  const call = { kind: "test.settle", subjectId: "a", to: chain.contracts.settlement };
  const queue = async (data: `0x${string}`): Promise<string> =>
    ctx.db.transaction(async (tx) => enqueueTransaction(ctx, tx, { ...call, data }));
  await assert.rejects(
    ctx.db.transaction(async (tx) => {
      await enqueueTransaction(ctx, tx, { ...call, data: "0x01" });
      throw new Error("the caller failed");
    }),
    /the caller failed/,
  );
  assert.deepEqual(await rowsOf(process), []);
  const id = await queue("0x02");
  assert.equal(await queue("0x02"), id);
  await assert.rejects(queue("0x03"), /another transaction test.settle/);
  assert.equal((await rowsOf(process)).length, 1);
});

test("what an earlier signer sent is followed to its end", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using before = await installation.openProcess();
  await anvil.setAutomine(false);
  await before.queue("a");
  await before.work();
  await anvil.rpc("anvil_dropAllTransactions");
  const key = "42".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  const administrator = { result: `0x${heir.slice(2).padStart(64, "0")}` };
  gate.decide((method) => (method === "eth_call" ? administrator : "pass"));
  await using now = await installation.openProcess({ SIGNER_KEY: key });
  gate.decide(() => "pass");
  assert.notEqual(now.chain.operator, before.chain.operator);
  assert.deepEqual(now.chain.contracts, before.chain.contracts);
  await anvil.rpc("anvil_setBalance", [heir, `0x${(10n ** 18n).toString(16)}`]);
  await now.queue("b");
  await settle(anvil, installation, [now]);
  await settle(anvil, installation, [now]);
  assert.deepEqual(now.done.map((each) => each.subjectId).toSorted(), ["a", "b"]);
  assert.deepEqual(
    (await rowsOf(now)).map((row) => row.nonce),
    [contractsTotal, 0],
  );
});

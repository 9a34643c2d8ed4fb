import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import type { Address, Hex } from "@svc/protocol";
import {
  keccak256,
  parseTransaction,
  serializeTransaction,
  type Signature,
  type TransactionSerializedEIP1559,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type Anvil, startAnvil } from "../../../test/anvil.ts";
import {
  fundedKey,
  type Installation,
  openInstallation,
  type SettlingProcess,
} from "../../../test/chain-processes.ts";
import { alarmsOf } from "../../../test/outbox-looks.ts";
import { sql } from "../platform/database/db.ts";
import { enqueueTransaction } from "./index.ts";
import { openRemoteSigner } from "./remote-signer.ts";
import type { UnsignedTransaction } from "./signer.ts";

type Asked = Record<"to" | "data" | "nonce" | "gas" | "maxFeePerGas" | "chainId", Hex> & {
  maxPriorityFeePerGas: Hex;
};

const account = privateKeyToAccount(`0x${fundedKey}`);
const other = privateKeyToAccount(`0x${"42".repeat(32)}`);

const sign = async (asked: Asked, by = account): Promise<Hex> =>
  by.signTransaction({
    type: "eip1559",
    chainId: Number(asked.chainId),
    nonce: Number(asked.nonce),
    to: asked.to,
    data: asked.data,
    gas: BigInt(asked.gas),
    maxFeePerGas: BigInt(asked.maxFeePerGas),
    maxPriorityFeePerGas: BigInt(asked.maxPriorityFeePerGas),
  });

/** The answer of a signer that refuses. */
class Refusal extends Error {}

let answer: (asked: Asked) => Promise<unknown> = sign;
let isAway = false;
const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const call = JSON.parse(await text(request)) as { id: number; method: string; params: [Asked] };
  assert.equal(call.method, "eth_signTransaction");
  if (isAway) {
    response.destroy();
    return;
  }
  const answered = await answer(call.params[0]).then(
    (result) => ({ result }),
    ({ message }: Refusal) => ({ error: { code: -32_000, message } }),
  );
  response.end(JSON.stringify({ jsonrpc: "2.0", id: call.id, ...answered }));
};
const server = createServer((request, response) => void serve(request, response));
server.listen(0, "127.0.0.1");
await once(server, "listening");
after(() => server.close().closeAllConnections());
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const address = account.address.toLowerCase() as Address;

const transaction: UnsignedTransaction = {
  chainId: 31_999,
  nonce: 0,
  to: other.address.toLowerCase() as Address,
  data: "0x1234",
  gasLimit: 100_000n,
  fees: { maxFee: 30n, priorityFee: 1n },
};

test("the answer of Web3Signer and that of an Ethereum node are both taken", async () => {
  await using signer = openRemoteSigner({ url, address });
  answer = sign;
  const plain = await signer.sign(transaction);
  assert.equal(plain.hash, keccak256(plain.raw));
  assert.equal(parseTransaction(plain.raw as TransactionSerializedEIP1559).data, "0x1234");
  answer = async (asked) => ({ raw: await sign(asked), tx: {} });
  assert.deepEqual(await signer.sign(transaction), plain);
});

/** Another transaction with the signature of the requested one. */
const swap = async (asked: Asked): Promise<Hex> => {
  const signed = parseTransaction((await sign(asked)) as TransactionSerializedEIP1559);
  return serializeTransaction({ ...signed, data: "0x1235" }, signed as Signature);
};

const lies: [what: string, answer: (asked: Asked) => Promise<unknown>][] = [
  ["another account", async (asked) => sign(asked, other)],
  ["another receiver", async (asked) => sign({ ...asked, to: address })],
  ["other data", async (asked) => sign({ ...asked, data: "0x1235" })],
  ["another nonce", async (asked) => sign({ ...asked, nonce: "0x1" })],
  ["another chain", async (asked) => sign({ ...asked, chainId: "0x1" })],
  ["a higher fee", async (asked) => sign({ ...asked, maxFeePerGas: "0xffff" })],
  ["more gas", async (asked) => sign({ ...asked, gas: "0xffffff" })],
  ["this transaction, in other bytes", swap],
  ["nothing", async () => null],
  ["an unsigned transaction", async () => "0x02c0"],
  ["no transaction", async () => "0x"],
];

for (const [what, lie] of lies) {
  test(`a signature over ${what} is refused`, async () => {
    await using signer = openRemoteSigner({ url, address });
    answer = lie;
    await assert.rejects(signer.sign(transaction), /another transaction or account/);
  });
}

/** An installation that signs through this test's server. */
const openSettling = async (anvil: Anvil, confirmations: number): Promise<Installation> =>
  openInstallation(anvil, {
    SIGNER_KEY: "",
    SIGNER_URL: url,
    SIGNER_ADDRESS: address,
    CONFIRMATIONS: String(confirmations),
  });

const statusesOf = async ({ ctx }: SettlingProcess): Promise<unknown[]> => {
  const rows = await ctx.db.query<{ subject_id: string; status: string; nonce: number | null }>(sql`
    select subject_id, status, nonce from chain_transaction where kind = 'test.settle' order by id`);
  return rows.map((row) => [row.subject_id, row.status, row.nonce]);
};

test("an installation settles with a key that it never sees", async () => {
  answer = sign;
  await using anvil = await startAnvil();
  await using installation = await openSettling(anvil, 1);
  await using process = await installation.openProcess();
  assert.equal(process.chain.operator, address);
  await process.queue("a");
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await process.work();
  assert.equal(process.done[0]?.status, "succeeded");
});

test("a transaction that the signer refuses keeps no other waiting, and leaves no nonce out", async () => {
  answer = sign;
  await using anvil = await startAnvil();
  await using installation = await openSettling(anvil, 1);
  await using process = await installation.openProcess();
  const { ctx } = process;
  await anvil.setAutomine(false);
  const workTwice = async (): Promise<void> => {
    await process.work();
    await anvil.mine();
    installation.advance(4);
    await process.work();
  };
  const { to } = transaction;
  const call = { kind: "test.settle", subjectId: "unwanted", to, data: "0x" } as const;
  await process.queue("before");
  await ctx.db.transaction(async (tx) => enqueueTransaction(ctx, tx, call));
  await process.queue("behind");
  answer = async (asked) => {
    if (asked.to === to) throw new Refusal("not to this account");
    return sign(asked);
  };
  await workTwice();
  assert.deepEqual(await statusesOf(process), [
    ["before", "succeeded", 4],
    ["unwanted", "queued", null],
    ["behind", "succeeded", 5],
  ]);
  assert.equal(await alarmsOf(process, "signer_refused"), 1);
  answer = sign;
  installation.advance(15);
  await workTwice();
  assert.deepEqual((await statusesOf(process))[1], ["unwanted", "succeeded", 6]);
});

test("a signer of another account raises an alarm, and transactions are sent once the right one is back", async () => {
  answer = sign;
  await using anvil = await startAnvil();
  await using installation = await openSettling(anvil, 1);
  await using process = await installation.openProcess();
  answer = async (asked) => sign(asked, other);
  await process.queue("a");
  await process.work();
  assert.equal(await alarmsOf(process, "signer_refused"), 1);
  assert.deepEqual(await statusesOf(process), [["a", "queued", null]]);
  answer = sign;
  installation.advance(15);
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await process.work();
  assert.deepEqual(await statusesOf(process), [["a", "succeeded", 4]]);
});

test("while the signer refuses to raise a fee, the bytes that it signed are handed over again", async () => {
  answer = sign;
  await using anvil = await startAnvil();
  await using installation = await openSettling(anvil, 1);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.rpc("anvil_dropAllTransactions");
  answer = async () => {
    throw new Refusal("the fee is too high");
  };
  installation.advance(60);
  await process.work();
  await anvil.mine();
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 1);
});

test("while the signer is away, what it has signed still becomes final", async () => {
  answer = sign;
  await using anvil = await startAnvil();
  await using installation = await openSettling(anvil, 2);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  await anvil.mine(2);
  isAway = true;
  await process.queue("b");
  installation.advance(4);
  await process.work();
  assert.equal(await alarmsOf(process, "node_unreachable"), 1);
  assert.deepEqual(
    process.done.map((each) => each.subjectId),
    ["a"],
  );
  isAway = false;
  installation.advance(4);
  await process.work();
  assert.deepEqual((await statusesOf(process))[1], ["b", "sent", 5]);
});

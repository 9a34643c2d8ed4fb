import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import type { Address, Hex } from "@svc/protocol";
import { keccak256, parseTransaction, type TransactionSerializedEIP1559 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { startAnvil } from "../../../test/anvil.ts";
import { fundedKey, openInstallation } from "../../../test/settling.ts";
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

let answer: (asked: Asked) => Promise<unknown> = sign;
const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const call = JSON.parse(await text(request)) as { id: number; method: string; params: [Asked] };
  assert.equal(call.method, "eth_signTransaction");
  const result = await answer(call.params[0]);
  response.end(JSON.stringify({ jsonrpc: "2.0", id: call.id, result }));
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

const lies: [what: string, answer: (asked: Asked) => Promise<unknown>][] = [
  ["another account", async (asked) => sign(asked, other)],
  ["another receiver", async (asked) => sign({ ...asked, to: address })],
  ["other data", async (asked) => sign({ ...asked, data: "0x1235" })],
  ["another nonce", async (asked) => sign({ ...asked, nonce: "0x1" })],
  ["another chain", async (asked) => sign({ ...asked, chainId: "0x1" })],
  ["a higher fee", async (asked) => sign({ ...asked, maxFeePerGas: "0xffff" })],
  ["more gas", async (asked) => sign({ ...asked, gas: "0xffffff" })],
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

test("an installation settles with a key that it never sees", async () => {
  answer = sign;
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil, {
    SIGNER_KEY: "",
    SIGNER_URL: url,
    SIGNER_ADDRESS: address,
    CONFIRMATIONS: "1",
  });
  await using process = await installation.openProcess();
  assert.equal(process.chain.operator, address);
  await process.queue("a");
  await process.work();
  installation.advance(4);
  await process.work();
  assert.equal(process.done[0]?.status, "succeeded");
});

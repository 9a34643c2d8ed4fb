// The times of a receipt: each case is a chain that reports other times for the same settled order.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Receipt } from "@svc/protocol";
import { encodeAbiParameters, parseAbiParameters } from "viem";

import { startAnvil, type Anvil } from "../../../test/anvil.ts";
import {
  issuer,
  openSettledChain,
  settleOrder,
  type SettledChain,
} from "../../../test/settled-order.ts";
import { verifyReceipt } from "./index.ts";

const day = 86_400;
let anvil: Anvil;
let chain: SettledChain;
let receipt: Receipt;
let expiresAt: number;
/** The time of the document and of both phases, unless a case names another. */
let start: number;

before(async () => {
  anvil = await startAnvil();
  chain = await openSettledChain(anvil);
  expiresAt = (await chain.now()) + day;
  ({ receipt } = await settleOrder(chain, { chainId: anvil.chainId, expiresAt }));
  start = receipt.initiate.blockTime;
});
after(async () => anvil[Symbol.asyncDispose]());

interface Times {
  attestedAt?: number;
  revokedAt?: number;
  initiatedAt?: number;
  confirmedAt?: number;
  now?: number;
}

/** Verifies the receipt that a chain with these times would have. */
async function verify(times: Times) {
  const { attestedAt = start, revokedAt = 0, initiatedAt = start } = times;
  const { confirmedAt = initiatedAt, now = confirmedAt } = times;
  const { initiate, confirm } = receipt;
  assert.ok(confirm !== undefined);
  const blockTimes = new Map([
    [initiate.blockNumber, initiatedAt],
    [confirm.blockNumber, confirmedAt],
  ]);
  const status = parseAbiParameters("uint48, uint48, uint48");
  const request = async ({ method, params }: { method: string; params?: unknown }) => {
    if (method === "eth_call") return encodeAbiParameters(status, [attestedAt, revokedAt, 0]);
    const given = params as unknown[];
    const answer = await anvil.rpc(method, given);
    const time = method === "eth_getBlockByNumber" && blockTimes.get(Number(given[0]));
    return time ? Object.assign(answer as object, { timestamp: `0x${time.toString(16)}` }) : answer;
  };
  const told = {
    ...receipt,
    initiate: { ...initiate, blockTime: initiatedAt },
    confirm: { ...confirm, blockTime: confirmedAt },
  };
  const { registry, settlement, operator } = chain;
  const own = { chainId: anvil.chainId, registry, settlement, operator, issuers: [issuer], now };
  return verifyReceipt(told, { client: { request }, ...own });
}

const refused = (reason: string) => ({ code: "receipt_refused", reason });

test("an order is confirmed no earlier than it is initiated", async () => {
  await verify({ confirmedAt: start });
  await assert.rejects(verify({ confirmedAt: start - 1 }), refused("confirm.blockTime"));
});

test("a document attested after the operator committed to the consent is refused", async () => {
  await verify({ attestedAt: start });
  const later = { attestedAt: start + 1, confirmedAt: start + 2 };
  await assert.rejects(verify(later), refused("fields[0].root"));
});

test("a field counts until the second of its end, and of its revocation in the same block", async () => {
  const last = { initiatedAt: expiresAt - 1 };
  await verify(last);
  await assert.rejects(verify({ initiatedAt: expiresAt }), refused("fields[0].expiresAt"));
  await verify({ ...last, revokedAt: expiresAt - 1 });
  await assert.rejects(verify({ ...last, revokedAt: expiresAt - 2 }), refused("fields[0].root"));
});

test("a phase more than five minutes ahead of the caller's clock is refused by its time", async () => {
  const now = start + 1000;
  await verify({ initiatedAt: now + 300, now });
  await assert.rejects(verify({ initiatedAt: now + 301, now }), refused("initiate.blockTime"));
  await verify({ confirmedAt: now + 300, now });
  await assert.rejects(verify({ confirmedAt: now + 301, now }), refused("confirm.blockTime"));
});

test("without a time of the caller a receipt is judged by the machine's clock", async (context) => {
  const { registry, settlement, operator } = chain;
  const own = { chainId: anvil.chainId, registry, settlement, operator, issuers: [issuer] };
  context.mock.timers.enable({ apis: ["Date"], now: (expiresAt + 1) * 1000 });
  const { fields } = await verifyReceipt(receipt, { rpcUrl: anvil.url, ...own });
  assert.deepEqual([...new Set(fields.map(({ standing }) => standing))], ["EXPIRED"]);
});

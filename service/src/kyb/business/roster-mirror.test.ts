// How a business changes by the state that was read of its wallet, on a fake chain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { businessWallet } from "@svc/contracts";
import { type Address, type CharterMember, encodeCharter } from "@svc/protocol";
import { type Abi, decodeFunctionData, encodeFunctionResult, type Hex } from "viem";
import { openTestContext } from "../../../../test/test-context.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import { sql } from "../../platform/database/db.ts";
import type { KybContext } from "../kyb-context.ts";
import { addressOf } from "../test-kyb-store.ts";
import { findBusiness } from "./business-store.ts";
import { followChain } from "./roster.ts";
import { findChainBlock, requestLook } from "./roster-store.ts";

await using opened = await openTestContext();

const anna: CharterMember = { address: addressOf("a"), isVoting: true };
const bela: CharterMember = { address: addressOf("b"), isVoting: true };
const rules = {
  signature_requests: "MAJORITY",
  data_requests: "MAJORITY",
  governance: "MAJORITY",
} as const;
const charterOf = (...members: CharterMember[]): Hex => encodeCharter({ rules, members });
const ruledAnew = encodeCharter({
  rules: { ...rules, data_requests: "UNANIMOUS" },
  members: [anna, bela],
});
const nobody = `0x${"00".repeat(20)}`;

interface Wallet {
  readonly block: number;
  readonly charter: Hex;
  readonly epoch: number;
  readonly successor: string;
}

const founded: Wallet = { block: 10, charter: charterOf(anna, bela), epoch: 0, successor: nobody };
let wallet = founded;
let ended: Address[] = [];

function answer(data: Hex): Hex {
  const abi: Abi = businessWallet.abi;
  const { functionName } = decodeFunctionData({ abi, data });
  const { charter, epoch, successor } = wallet;
  const results: Record<string, unknown> = {
    charter,
    epoch: BigInt(epoch),
    nonce: BigInt(epoch),
    removal: [nobody, 0, 0],
    successor,
  };
  return encodeFunctionResult({ abi, functionName, result: results[functionName] });
}

const request = async (method: string, [call]: readonly unknown[] = []): Promise<Hex> => {
  if (method === "eth_blockNumber") return `0x${wallet.block.toString(16)}`;
  return answer((call as { data: Hex }).data);
};
const ctx = Object.assign(opened, {
  chain: { isEmbedded: false, confirmations: 1, chainId: 31_999, node: { request } },
  endBusinessLogins: async (_tx: unknown, business: Address) => void ended.push(business),
}) as unknown as KybContext;

let count = 0;
/** A business as it was founded. */
async function found(): Promise<Address> {
  count += 1;
  const business: Address = `0x${String(count).padStart(40, "0")}`;
  await ctx.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${business}, 'live', 'Test Ltd', 'active', ${anna.address}, ${business}, 0, ${Buffer.alloc(32)},
        ${bufferOfHex(founded.charter)}, 0)`,
  );
  await read(business, {});
  return business;
}

/** Reads a wallet that differs from its foundation by this. @returns whose logins ended */
async function read(business: Address, changed: Partial<Wallet>): Promise<Address[]> {
  wallet = { ...founded, ...changed };
  ended = [];
  await requestLook(ctx.db, business);
  await followChain(ctx);
  return ended;
}

await test("a business that moved keeps its first successor, whatever its old wallet names later", async () => {
  const business = await found();
  const [first, second] = [addressOf("1"), addressOf("2")];
  assert.deepEqual(await read(business, { block: 11, epoch: 1, successor: first }), [business]);
  await read(business, { block: 12, epoch: 2, successor: second });
  const { status, successor, epoch } = (await findBusiness(ctx.db, business)) ?? assert.fail();
  assert.deepEqual([status, successor, epoch], ["moved", first, 2]);
});

await test("a state of an older block changes nothing, one of the same block is taken", async () => {
  const business = await found();
  const left = charterOf(anna);
  await read(business, { block: 20, epoch: 1, charter: left });
  assert.deepEqual(await read(business, { block: 19 }), []);
  const known = async () => {
    const { epoch, charter } = (await findBusiness(ctx.db, business)) ?? assert.fail();
    return [await findChainBlock(ctx.db, business), epoch, charter.members.length];
  };
  assert.deepEqual(await known(), [20, 1, 1]);
  await read(business, { block: 20, epoch: 2 });
  assert.deepEqual(await known(), [20, 2, 2]);
});

await test("logins end when members or voting rights change, or may have changed in between", async () => {
  const observer = { ...bela, isVoting: false };
  for (const [changed, isEnded] of [
    [{ epoch: 1, charter: ruledAnew }, false],
    [{ epoch: 1 }, false],
    [{ epoch: 2 }, true],
    [{ epoch: 1, charter: charterOf(anna) }, true],
    [{ epoch: 1, charter: charterOf(anna, observer) }, true],
  ] as const) {
    const business = await found();
    const logins = await read(business, { block: 11, ...changed });
    assert.deepEqual(logins, isEnded ? [business] : [], JSON.stringify(changed));
  }
});

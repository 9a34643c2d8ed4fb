// What anybody may do with approvals of members: hand them to the contract.
import {
  type Address,
  approvalDigest,
  type BusinessCategory,
  businessCategory,
  governanceHash,
  type Hex,
  type Hex32,
  signDigest,
} from "@svc/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { joinApprovals } from "../service/src/kyb/ballot/ballots.ts";
import {
  type GovernanceOperation,
  loadWalletCalls,
} from "../service/src/kyb/business/wallet-calls.ts";
import type { KybWorld } from "./kyb-world.ts";

/** Who approved, and until when that counts, in Unix seconds. */
interface Approvers {
  readonly by: readonly string[];
  readonly validUntil: number;
}

/** Sends a transaction as somebody whom the service does not know. */
export async function callAsStranger({ ctx }: KybWorld, to: Address, data: Hex): Promise<void> {
  const account = privateKeyToAccount(generatePrivateKey());
  const raw = await account.signTransaction({
    type: "eip1559",
    chainId: ctx.chain.chainId,
    nonce: 0,
    to,
    data,
    gas: 3_000_000n,
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
  });
  await ctx.chain.node.submit([raw]);
}

/** The call that carries out the first act of a wallet, which anybody may send once these members approved it. */
export async function firstActCall(
  world: KybWorld,
  act: { business: Address; operation: GovernanceOperation; signature: string; arguments: Hex },
  approvers: Approvers,
): Promise<Hex> {
  const { business, operation, signature, arguments: args } = act;
  const hash = governanceHash({ operation: signature, arguments: args, nonce: 0 });
  const approved = { business, category: businessCategory.governance, hash };
  const approvals = relayed(world, approved, approvers);
  return (await loadWalletCalls()).govern(operation, args, approvals);
}

/** The call that records a hash which these members approved. */
export async function recordCall(
  world: KybWorld,
  { business, hash }: { business: Address; hash: Hex32 },
  approvers: Approvers,
): Promise<Hex> {
  const approved = { business, category: businessCategory.signature, hash };
  return (await loadWalletCalls()).record(hash, relayed(world, approved, approvers));
}

function relayed(
  world: KybWorld,
  approved: { business: Address; category: BusinessCategory; hash: Hex32 },
  { by, validUntil }: Approvers,
): { validUntil: number; signatures: Hex } {
  const { chainId } = world.ctx.chain;
  const digest = approvalDigest({ chainId, epoch: 0, validUntil, ...approved });
  const approvals = by
    .map((name) => world.person(name))
    .toSorted((one, other) => (one.address < other.address ? -1 : 1))
    .map((member) => ({
      member: member.address,
      signature: signDigest(digest, member.privateKey),
    }));
  return { validUntil, signatures: joinApprovals(approvals) };
}

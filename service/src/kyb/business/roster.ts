// Mirrors business wallets from the chain. Members, rules, epoch, nonce, removal and successor change in the tables
// only when that is final on chain, no matter who called the contract.
import {
  type Address,
  type Charter,
  decodeCharter,
  encodeCharter,
  governanceActs,
} from "@svc/protocol";
import { throwGravest } from "../../chain/index.ts";
import { uuidv7 } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { restartBallots } from "../ballot/ballots.ts";
import type { Business } from "./business.ts";
import { findBusiness, lockBusiness } from "./business-store.ts";
import { insertMembers } from "./founding-store.ts";
import { findWithdrawals, mendProposals, restartProposals } from "./stale-proposals.ts";
import { findCharterChange } from "./proposal-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { sealMemberName } from "./members.ts";
import { deleteRemoval, saveRemoval } from "./removal-store.ts";
import { namesOf } from "./shown-proposal.ts";
import * as store from "./roster-store.ts";
import { stopBusiness } from "./standing.ts";
import { loadWalletCalls, type WalletState } from "./wallet-calls.ts";

/**
 * How many businesses are read at once. Each read makes six calls, and one batch to the chain's node holds 50: the
 * calls of one read must not be split over two batches, which different nodes may answer.
 */
const looksMax = 8;
/** After this long, another process may read a business whose reader has died. */
const claimSeconds = 30;
/** The pause after a read that failed. */
const retrySeconds = 5;

/** Reads every due business from the chain; any number of processes may do so. @throws as {@link throwGravest} */
export async function followChain(ctx: KybContext): Promise<void> {
  // A cheap check first: this runs every second, and mostly none is due.
  if (!(await store.isLookDue(ctx.db, { now: ctx.clock.now(), except: [] }))) return;
  const looked = new Set<Address>();
  for (;;) {
    const now = ctx.clock.now();
    const claim = { now, until: now + claimSeconds, limit: looksMax };
    const looks = await store.claimLooks(ctx.db, claim);
    const outcomes = await Promise.allSettled(looks.map(async (look) => followOrPutOff(ctx, look)));
    const failed = outcomes.filter((each) => each.status === "rejected");
    throwGravest(
      failed.map(({ reason }): unknown => reason),
      "businesses could not be looked at",
    );
    for (const { address } of looks) looked.add(address);
    if (looks.length === looksMax) continue;
    // Votes and requests lock a business for a moment, and nothing wakes this job when they end.
    if (!(await store.waitForLook(ctx.db, { now, except: [...looked] }))) return;
  }
}

/** Makes businesses due that have anything open, since anybody may call their contracts directly. */
export async function lookAtOpen({ db, clock }: Pick<KybContext, "db" | "clock">): Promise<void> {
  await store.requestOpenLooks(db, clock.now());
}

async function followOrPutOff(ctx: KybContext, look: store.ClaimedLook): Promise<void> {
  try {
    await follow(ctx, look);
  } catch (error) {
    const putOff = store.putOffLook(ctx.db, look, ctx.clock.now() + retrySeconds);
    const fault = await putOff.then(
      () => [],
      (another: unknown) => [another],
    );
    throwGravest([error, ...fault], `the business ${look.address} could not be read`);
  }
}

async function follow(ctx: KybContext, { address, claim }: store.ClaimedLook): Promise<void> {
  const calls = await loadWalletCalls();
  const state = await calls.read(ctx, address);
  const { block, nonce } = state;
  const withdrawals = await findWithdrawals(ctx, { business: address, block, nonce });
  await ctx.db.transaction(async (tx) => {
    const before = await lockBusiness(tx, address);
    if (before === null) return;
    // Another process has read a later state.
    if (block < (await store.findChainBlock(tx, address))) return;
    await mirror(ctx, tx, { before, state, claim });
    const business = await findBusiness(tx, address);
    if (business !== null) await mendProposals(ctx, tx, { business, block, withdrawals });
  });
}

async function mirror(
  ctx: KybContext,
  tx: Queryable,
  { before, state, claim }: { before: Business; state: WalletState; claim: number },
): Promise<void> {
  const { address } = before;
  const charter = decodeCharter(state.charter);
  if (charter === null) throw new Error(`the wallet ${address} holds no charter`);
  const isOpen = before.status === "active" || before.status === "suspended";
  const hasMoved = state.successor !== null && isOpen;
  const status = hasMoved ? "moved" : before.status;
  const { epoch, nonce, successor } = state;
  await store.saveMirror(tx, {
    address,
    charter: state.charter,
    epoch,
    nonce,
    // The first successor stays, because merchants were told of it; the old wallet may name another one later.
    successor: before.successor ?? successor,
    status,
    block: state.block,
    claim,
  });
  // Removals in a wallet that the business has left have no meaning.
  if (state.removal === null || status === "moved") await deleteRemoval(tx, address);
  else await saveRemoval(tx, { business: address, ...state.removal });
  if (epoch !== before.epoch) await beginEpoch(ctx, tx, { before, charter, epoch });
  else if (nonce !== before.nonce) {
    const business = await findBusiness(tx, address);
    if (business !== null) await restartProposals(ctx, tx, business);
  }
  if (hasMoved)
    await stopBusiness(ctx, tx, { business: address, reason: "business_wallet_rotated" });
}

/** Follows a changed charter: updates members, restarts open ballots, and ends logins if the roster changed. */
async function beginEpoch(
  ctx: KybContext,
  tx: Queryable,
  { before, charter, epoch }: { before: Business; charter: Charter; epoch: number },
): Promise<void> {
  const { address } = before;
  const removed = await replaceRoster(ctx, tx, { before, charter });
  await restartBallots(ctx, tx, address);
  // Only after a single change: after several, the roster may have been another one in between.
  const isSameRoster = epoch === before.epoch + 1 && rosterOf(charter) === rosterOf(before.charter);
  if (!isSameRoster) await ctx.endBusinessLogins(tx, address);
  const details = { epoch, removed: removed.length, members: charter.members.length };
  const entry = { actor: "system", action: "business.roster", subject: address, details };
  await ctx.audit.record(tx, entry);
}

/** A text that is equal for charters with the same members and voting rights, whatever their rules. */
function rosterOf({ members }: Charter): string {
  const seats = members.map(({ address, isVoting }) => `${address} ${isVoting}`);
  return seats.toSorted().join(", ");
}

/** @returns the members who are no longer on the roster */
async function replaceRoster(
  ctx: KybContext,
  tx: Queryable,
  { before, charter }: { before: Business; charter: Charter },
): Promise<Address[]> {
  const { address, creator } = before;
  const stays = new Set(charter.members.map((member) => member.address));
  const known = new Set(before.charter.members.map((member) => member.address));
  const removed = [...known].filter((member) => !stays.has(member));
  const added = charter.members.filter((member) => !known.has(member.address));
  if (removed.length > 0) await store.deleteMembers(tx, address, removed);
  if (added.length > 0) {
    const nameOf = await readNames(ctx, tx, { address, charter });
    const rows = added.map((member) => {
      const id = uuidv7(ctx.clock, ctx.random);
      const name = nameOf.get(member.address) ?? member.address;
      const nameSealed = sealMemberName(ctx, id, name);
      const isCreator = member.address === creator;
      const { isVoting } = member;
      return { id, member: member.address, nameSealed, isVoting, isCreator, signature: null };
    });
    await insertMembers(tx, address, { members: rows, now: ctx.clock.now() });
  }
  const voters = charter.members.filter(({ isVoting }) => isVoting);
  await store.setVotingRights(
    tx,
    address,
    voters.map((member) => member.address),
  );
  return removed;
}

/** The names of members given by the proposer of this charter; none if it was not proposed here. */
async function readNames(
  ctx: KybContext,
  tx: Queryable,
  { address, charter }: { address: Address; charter: Charter },
): Promise<ReadonlyMap<Address, string>> {
  const { arguments: args } = governanceActs.changeCharter(encodeCharter(charter));
  const change = await findCharterChange(tx, { business: address, arguments: args });
  const names = change === null ? [] : namesOf(ctx, change);
  return new Map(names.map((member) => [member.address, member.name]));
}

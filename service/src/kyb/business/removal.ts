// The removal of a member who seems lost (decisions section 6, Lost member), and how a member's signature ends it, or a
// move by the operator.
import { type Address, type Hex, keepDigest } from "@svc/protocol";
import {
  type ChainContext,
  enqueueTransaction,
  failuresBefore,
  type FinalHandlers,
  type FinalTransaction,
  findTransactionStatus,
  subjectOfAttempt,
} from "../../chain/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";
import { recoverAddress } from "../../platform/cryptography/secp256k1.ts";
import { lockBusiness, noteKnown } from "./business-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { requireMember } from "./members.ts";
import * as store from "./removal-store.ts";
import { requestLook } from "./roster-store.ts";
import { cancelMove, listMoves } from "./standing-store.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

const kinds = { keep: "business.keep", finish: "business.remove" } as const;
/** Both as in the contract (decisions section 6, Lost member). */
const noticeSeconds = 30 * 86_400;
const protectionSeconds = 90 * 86_400;
const dueBatch = 20;
/** Block times of other chains may lag by this much, and the contract refuses a removal that is too early. */
const lateSeconds = 120;
/** The pause after a reverted transaction, times the number of those that were reverted. */
const retrySeconds = 600;
/** The most transactions in one epoch. The last one is sent eleven hours after the first; later ones would fail too. */
const triesMax = 12;

/**
 * Processes a member's signature against its removal, or against a move of the business by the operator; the nonce that
 * it signs tells which. A removal ends on chain, and this service does not finish it meanwhile; a move ends at once.
 *
 * @throws {Problem} business_not_found, nothing_to_end, signature_wrong
 */
export async function keepMember(
  ctx: KybContext,
  member: Address,
  given: { business: Address; signature: string },
): Promise<{ ended: "removal" | "move" }> {
  const calls = await loadWalletCalls();
  return ctx.db.transaction(async (tx) => {
    // First without a lock: a stranger who had to wait for one would learn that members are acting.
    await requireMember(tx, { business: given.business, member });
    const business = await lockBusiness(tx, given.business);
    if (!business?.charter.members.some(({ address }) => address === member))
      throw new Problem("business_not_found");
    const { address } = business;
    const removal = (await store.listRemovals(tx, [address])).find(
      (each) => each.member === member,
    );
    const [move] = await listMoves(tx, [address]);
    const isSigned = (nonce: number): boolean => {
      const digest = keepDigest({ chainId: ctx.chain.chainId, business: address, nonce });
      return recoverAddress(digest, given.signature) === member;
    };
    const isOfRemoval = removal !== undefined && isSigned(removal.keepNonce);
    const isOfMove = move !== undefined && isSigned(move.keepNonce);
    if (isOfRemoval || isOfMove) await noteKnown(tx, { business: address, member });
    if (isOfRemoval) {
      const answer = { business: address, member, by: "signature", now: ctx.clock.now() } as const;
      await store.noteAnswered(tx, answer);
      const subjectId = `${address}:${removal.keepNonce}`;
      // A wallet that did not get the answer may sign again, with another signature. One transaction is enough, and
      // enqueueTransaction would throw for other data.
      if ((await findTransactionStatus(tx, kinds.keep, subjectId)) === null) {
        const data = calls.keep(given.signature.toLowerCase() as Hex);
        await enqueueTransaction(ctx, tx, { kind: kinds.keep, subjectId, to: address, data });
      }
      return { ended: "removal" };
    }
    if (isOfMove) {
      await cancelMove(tx, address);
      await ctx.audit.record(tx, {
        actor: member,
        action: "business.move.cancel",
        subject: address,
      });
      return { ended: "move" };
    }
    if (removal === undefined && move === undefined) throw new Problem("nothing_to_end");
    throw signatureWrong(given.signature);
  });
}

/** Until when a member that answered its removal is protected, Unix seconds; null if it did not answer. */
export function protectedUntil({ answeredAt }: store.Removal): number | null {
  return answeredAt === null ? null : answeredAt + protectionSeconds;
}

/**
 * Whether the open removal of a wallet, which has at most one, rules out a vote on the removal of this member: it
 * concerns somebody else, or its member may still answer, or is still protected by an answer.
 */
export function standsInTheWayOf(
  member: Address | null,
  { open, now }: { open: store.Removal; now: number },
): boolean {
  return open.member !== member || !isRenewable(open, now);
}

/** Whether members may decide on a removal again: its member answered long ago, but did not end it on chain. */
export function isRenewable(removal: store.Removal, now: number): boolean {
  const until = protectedUntil(removal);
  return until !== null && until <= now;
}

/**
 * Restarts the notice of an open removal that its member has only answered by votes. A wallet has one removal at a
 * time: without this, a member who votes but never signs would block all other removals for good.
 *
 * @returns false if there is no such removal, so that one has to be started on chain
 */
export async function renewRemoval(
  { clock }: Pick<KybContext, "clock">,
  tx: Queryable,
  of: { business: Address; member: Address },
): Promise<boolean> {
  const now = clock.now();
  const times = { answeredBy: now - protectionSeconds, endsAt: now + noticeSeconds };
  return store.renewRemoval(tx, { ...of, ...times });
}

/** Removes members who did not answer within the notice. A vote is an answer too, though the contract knows none. */
export async function finishRemovals(ctx: ChainContext): Promise<void> {
  const now = ctx.clock.now();
  const before = now - (ctx.chain.isEmbedded ? 0 : lateSeconds);
  const calls = await loadWalletCalls();
  await ctx.db.transaction(async (tx) => {
    const due = await store.takeDueRemovals(tx, { now, before, limit: dueBatch });
    for (const removal of due) {
      const { business: to, keepNonce, epoch, failures } = removal;
      const subjectId = subjectOfAttempt([to, keepNonce, epoch], failures);
      const data = calls.finishRemoval();
      await enqueueTransaction(ctx, tx, { kind: kinds.finish, subjectId, to, data });
    }
  });
}

function removalOf(subjectId: string): store.DueRemoval {
  const [business, keepNonce, epoch, number] = subjectId.split(":");
  return {
    business: business as Address,
    keepNonce: Number(keepNonce),
    epoch: Number(epoch),
    failures: failuresBefore(number),
  };
}

/** Has the business read from the chain after a final transaction, and retries reverted removals. */
export function removalFinalHandlers(ctx: Pick<KybContext, "clock">): FinalHandlers {
  return {
    [kinds.keep]: lookAgain,
    [kinds.finish]: async (tx, done) => {
      // First, because the row of a business is always locked before that of its removal.
      await lookAgain(tx, done);
      for (const { subjectId, status } of done)
        if (status === "reverted") {
          const sent = removalOf(subjectId);
          if (sent.failures + 1 >= triesMax) continue;
          const pause = retrySeconds * (sent.failures + 1);
          await store.putOffRemoval(tx, sent, ctx.clock.now() + pause);
        }
    },
  };
}

async function lookAgain(tx: Queryable, done: readonly FinalTransaction[]): Promise<void> {
  for (const { subjectId } of done)
    await requestLook(tx, subjectId.slice(0, subjectId.indexOf(":")) as Address);
}

// The removal of a member who seems lost (decisions section 6, Lost member), and a move by the operator's hand: the
// member's signature ends either.
import { type Address, type Hex, keepDigest } from "@svc/protocol";
import {
  type ChainContext,
  enqueueTransaction,
  type FinalHandlers,
  type FinalTransaction,
} from "../chain/index.ts";
import type { Queryable } from "../platform/db.ts";
import { Problem } from "../platform/problems.ts";
import { recoverAddress } from "../platform/secp256k1.ts";
import { lockBusiness } from "./business-store.ts";
import type { KybContext } from "./kyb-context.ts";
import * as store from "./roster-store.ts";
import { cancelMove, listMoves } from "./standing-store.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

const kinds = { keep: "business.keep", finish: "business.remove" } as const;
const dueBatch = 20;
/** Blocks of other chains may be stamped a little behind. */
const lateSeconds = 120;

/**
 * A member stays: its signature over the number of its removal, or of a move of the business, is its own word that it
 * is there. The removal ends on the chain, and is not finished from here meanwhile; the move ends at once.
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
    if (removal !== undefined && isSigned(removal.keepNonce)) {
      await store.noteAnswered(tx, { business: address, member, now: ctx.clock.now() });
      const subjectId = `${address}:${removal.keepNonce}`;
      const data = calls.keep(given.signature.toLowerCase() as Hex);
      await enqueueTransaction(ctx, tx, { kind: kinds.keep, subjectId, to: address, data });
      return { ended: "removal" };
    }
    if (move !== undefined && isSigned(move.keepNonce)) {
      await cancelMove(tx, address);
      await ctx.audit.record(tx, {
        actor: member,
        action: "business.move.cancel",
        subject: address,
      });
      return { ended: "move" };
    }
    throw new Problem(
      removal === undefined && move === undefined ? "nothing_to_end" : "signature_wrong",
    );
  });
}

/** Removes members who did not answer within the notice. One who voted since is there, and is never removed from here. */
export async function finishRemovals(ctx: ChainContext): Promise<void> {
  const before = ctx.clock.now() - (ctx.chain.isEmbedded ? 0 : lateSeconds);
  const calls = await loadWalletCalls();
  await ctx.db.transaction(async (tx) => {
    const due = await store.takeDueRemovals(tx, { before, limit: dueBatch });
    for (const { business, keepNonce, epoch } of due) {
      const subjectId = `${business}:${keepNonce}:${epoch}`;
      const data = calls.finishRemoval();
      await enqueueTransaction(ctx, tx, { kind: kinds.finish, subjectId, to: business, data });
    }
  });
}

/** The roster follows what the chain says afterwards, whether it did as asked or not. */
export function removalFinalHandlers(): FinalHandlers {
  return { [kinds.keep]: lookAgain, [kinds.finish]: lookAgain };
}

async function lookAgain(tx: Queryable, done: readonly FinalTransaction[]): Promise<void> {
  for (const { subjectId } of done)
    await store.requestLook(tx, subjectId.slice(0, subjectId.indexOf(":")) as Address);
}

import { type Address, decodeCharter, type Hex, invitationDigest } from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { recoverAddress } from "../../platform/cryptography/secp256k1.ts";
import { isRefusalOf } from "../ballot/ballot.ts";
import { connectionOfVotes } from "../ballot/ballots.ts";
import { deploy } from "./founding.ts";
import * as store from "./founding-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { listMembersOf } from "./members.ts";
import { shownCharter } from "./shown-charter.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";

/** An invitation as the inbox of the invited identity shows it. */
export interface InboxInvitation {
  readonly id: string;
  readonly kind: "invitation";
  readonly business: { readonly address: Address; readonly name: string };
  /** Unix seconds. */
  readonly expiresAt: number;
}

/**
 * The open invitations of an identity, with everything from which its wallet recomputes what to sign; oldest first.
 *
 * @param page.after the id of the invitation after which the page begins; empty for the first page
 */
export async function listInvitations(
  ctx: KybContext,
  user: Address,
  page: { limit: number; after: string },
): Promise<InboxInvitation[]> {
  const now = ctx.clock.now();
  const foundings = await store.listInvitationsTo(ctx.db, user, { ...page, now });
  if (foundings.length === 0) return [];
  const addresses = foundings.map(({ address }) => address);
  const rosters = await listMembersOf(ctx, ctx.db, addresses);
  return foundings.map(({ invitationId: id, address, name, ...founding }) => {
    const { environment, salt, deadline, creator } = founding;
    const charter = decodeCharter(founding.charter);
    if (charter === null) throw new Error(`${address} is founded with no charter`);
    return {
      id,
      kind: "invitation" as const,
      business: { address, name },
      chainId: ctx.chain.chainId,
      requester: null,
      name,
      environment,
      creator,
      factory: ctx.chain.contracts.factories[environment],
      salt,
      charter: shownCharter(charter, rosters.get(address) ?? []),
      deadline,
      expiresAt: deadline,
    };
  });
}

/** An answer to an invitation. */
interface InvitationAnswer {
  readonly id: string;
  readonly member: Address;
  readonly vote: "approve" | "reject";
  readonly signature: string;
}

/**
 * Processes an identity's answer to its invitation. The last signature has the wallet deployed; one refusal ends the
 * founding. Repeating an answer changes nothing.
 *
 * @returns null if the id is none of an invitation to this identity
 * @throws {Problem} ballot_over, already_voted, signature_wrong
 */
export async function answerInvitation(
  ctx: KybContext,
  answer: InvitationAnswer,
): Promise<{ status: string } | null> {
  const { id, member, vote } = answer;
  return ctx.db.transaction(async (tx) => {
    const founding = await store.lockInvitation(tx, { id, member });
    if (founding === null) return null;
    const answered = { founding, answer };
    if (vote === "approve") return { status: await approve(ctx, tx, answered) };
    return { status: await refuse(ctx, tx, answered) };
  });
}

interface Answered {
  readonly founding: store.Founding & { readonly hasSigned: boolean };
  readonly answer: InvitationAnswer;
}

async function approve(
  ctx: KybContext,
  tx: Queryable,
  { founding, answer }: Answered,
): Promise<"open" | "approved"> {
  const { address, status } = founding;
  if (founding.hasSigned && status !== "lapsed") return status === "inviting" ? "open" : "approved";
  if (status !== "inviting" || isLate(ctx, founding)) throw new Problem("ballot_over");
  if (!isAnswer(ctx, founding, answer)) throw signatureWrong(answer.signature);
  const signature = answer.signature.toLowerCase() as Hex;
  const kept = { business: address, member: answer.member, signature };
  if ((await store.keepInvitationSignature(tx, kept)) > 0) return "open";
  await deploy(ctx, tx, founding);
  return "approved";
}

async function refuse(
  ctx: KybContext,
  tx: Queryable,
  { founding, answer }: Answered,
): Promise<"refused"> {
  const { address, status } = founding;
  // Somebody else has refused already, so the founding has ended as this member wants it to.
  const hasEnded = status === "lapsed";
  if ((status !== "inviting" && !hasEnded) || isLate(ctx, founding))
    throw new Problem("ballot_over");
  if (founding.hasSigned) throw new Problem(hasEnded ? "ballot_over" : "already_voted");
  if (!isAnswer(ctx, founding, answer)) throw signatureWrong(answer.signature);
  if (hasEnded) return "refused";
  await store.setFoundingStatus(tx, address, "lapsed");
  const entry = { actor: answer.member, action: "business.decline", subject: address };
  await ctx.audit.record(tx, entry);
  return "refused";
}

function isLate({ clock }: Pick<KybContext, "clock">, { deadline }: store.Founding): boolean {
  return deadline < clock.now();
}

function isAnswer(
  ctx: KybContext,
  founding: store.Founding,
  { id, member, vote, signature }: InvitationAnswer,
): boolean {
  if (vote === "reject")
    return isRefusalOf(member, { id, connection: connectionOfVotes(ctx, id) }, signature);
  const { environment, salt, charter, deadline } = founding;
  const factory = ctx.chain.contracts.factories[environment];
  const invitation = { chainId: ctx.chain.chainId, factory, salt, charter, deadline };
  return recoverAddress(invitationDigest(invitation), signature) === member;
}

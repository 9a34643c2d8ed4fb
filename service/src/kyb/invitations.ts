import type { Address } from "@svc/protocol";
import type { KybContext } from "./kyb-context.ts";

/** An invitation as it lies in the inbox of whoever is invited. */
export interface InboxInvitation {
  readonly id: string;
  readonly kind: "invitation";
  readonly business: { readonly address: Address; readonly name: string };
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Foundings that wait for this identity's signature. */
export async function listInvitations(
  _ctx: KybContext,
  _user: Address,
): Promise<InboxInvitation[]> {
  return [];
}

/** The identity's answer to its invitation; null where the id is none of an invitation to it. */
export async function answerInvitation(
  _ctx: KybContext,
  _answer: { id: string; member: Address; vote: "approve" | "reject"; signature: string },
): Promise<{ status: string } | null> {
  return null;
}

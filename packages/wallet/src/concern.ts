import type { Warning } from "@svc/protocol";
import { WalletRefusal } from "./refusal.ts";

/** What a person has to confirm deliberately, beyond the approval itself. */
export type Concern =
  | "other-network"
  | "unknown-requester"
  | "contract-call"
  | "token-approval"
  | "paid-before"
  | Warning;

const sentences: Readonly<Record<Concern, string>> = {
  "other-network": "the browser is in another network: go on only if it is in front of you",
  "unknown-requester": "no broker you trust vouches for who asks",
  "contract-call": "the transaction calls a contract, and only its code says what that does",
  "paid-before": "this link was signed before, and approving it pays again",
  "token-approval": "the transaction lets somebody else spend your tokens",
  permit: "the document lets somebody else spend your tokens",
  "transfer-with-authorization": "the document moves your tokens",
  "receive-with-authorization": "the document lets somebody else collect your tokens",
  order: "the document offers your tokens or collectibles for sale",
  "safe-transaction": "the document approves a transaction of a shared account",
  "user-operation": "the document lets an account of yours act on the chain",
  delegation: "the document lets somebody else act for you",
  "blind-hash": "what is signed is a bare hash that shows nothing of what it stands for",
};

/** What a concern means, as a clause without a full stop. */
export function sayConcern(concern: Concern): string {
  return sentences[concern];
}

/** Every concern there is: what can be accepted. */
export function isConcern(text: string): text is Concern {
  return Object.hasOwn(sentences, text);
}

/** Nothing was signed, because a concern was not accepted. */
export class ConcernsRefusal extends WalletRefusal {
  override name = "ConcernsRefusal";
  readonly concerns: readonly Concern[];

  /** @param requester who asks, as far as the wallet can tell */
  constructor(concerns: readonly Concern[], requester: string) {
    super("not_accepted", `${requester} asks, and ${concerns.map(sayConcern).join("; ")}`);
    this.concerns = concerns;
  }
}

import type { Action, Address, Link, Refusal, ResultOf } from "@svc/protocol";
import type { Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import type { HistoryEntry } from "./history.ts";
import type { Outcome } from "./outcome.ts";
import type { Requester } from "./requester.ts";

/** What a link asks for, in words for the person who decides and as data for programs. */
export interface Description {
  readonly action: Action;
  /** The identity that would answer. */
  readonly identity: Address;
  /** In plain words, one statement per line; every text that others wrote has gone through `shownText`. */
  readonly words: readonly string[];
  readonly requester: Requester;
  /** What has to be accepted in addition to the approval. */
  readonly concerns: readonly Concern[];
  /** Whether the approval needs the two digits that the page shows. */
  readonly codeNeeded: boolean;
  /** How the answer travels. */
  readonly returnType: string;
  /** Where it goes: the text that is signed. Absent if the answer is only shown. */
  readonly connection?: string;
  /** Unix seconds; absent if the link names no time. */
  readonly expiresAt?: number;
  /** What is asked for, exactly; the members depend on the action. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** A person's approval, after a check that it contains nothing that the request does not take. */
export interface CheckedApproval {
  /** The two digits of the page; empty if none are needed. */
  readonly code: string;
  /** Names that are asked for and withheld. */
  readonly without: readonly string[];
  /** Names that the person picks, if the link leaves the choice to them. */
  readonly fields: readonly string[];
  /** The business that is meant, if the person acts for one and said which. */
  readonly business: Address | undefined;
  /** The most that the transaction costs as it was shown; absent if nothing was shown. */
  readonly feeWeiMax?: bigint;
}

/** What the link alone does not say about a request: an approval is refused if something else was shown. */
export interface Said {
  /** Who asks for what, or on which chain, as one text to compare. */
  readonly terms: string;
  /** Which fields would be given, if fields are asked for, also as one text to compare. */
  readonly given?: string;
  /** The most that a transaction costs. */
  readonly feeWeiMax?: bigint;
}

/** A request that has been read; if a broker can say who asks, the broker has been asked. */
export type OpenRequest = Opened & (Answered | Claimed);

/** A request that is answered with a signature. */
interface Answered {
  /** Signs the answer; called once, when every concern is accepted. @throws {WalletRefusal} */
  answer(approval: CheckedApproval): Promise<ResultOf[Action]>;
  /** Carries out what was signed, after it is in the history and before the answer is sent. @throws {WalletRefusal} */
  perform?(): Promise<void>;
}

/** A request that is accepted here and decided elsewhere. */
interface Claimed {
  /** Accepts it; called once, when every concern is accepted. @throws {WalletRefusal} */
  claim(approval: CheckedApproval): Promise<Outcome>;
}

interface Opened {
  readonly description: Description;
  /** Absent if the link itself, or a stored claim, says everything. */
  readonly said?: Said;
  /** Whether `without`, `fields` and `business` have a meaning here. */
  readonly takes?: { readonly without?: true; readonly fields?: true; readonly business?: true };
  /** What the history records of the answer, without the values. */
  trace?(approval: CheckedApproval): Trace;
  /**
   * Called last, once the answer has been accepted: if the call is interrupted before that, everything is still as it
   * was.
   */
  settled?(): Promise<void>;
}

/** What a request leaves in the history. */
export type Trace = Pick<
  HistoryEntry,
  "id" | "business" | "purpose" | "fields" | "withheld" | "linkHash"
> & {
  /** When it was signed, if that was earlier. */
  readonly at?: number;
};

/** How a request is declined. */
export interface Declining {
  /** The person says that somebody else started this. */
  readonly notStarted: boolean;
  /** Sign the refusal also for an unknown requester, who learns the identity by it. */
  readonly signed: boolean;
}

/** A refusal on its way out; `notStarted` is for the broker of a login. */
export type SentRefusal = Refusal & { readonly notStarted?: true };

/** One action of the protocol: a row of the table in `actions.ts`. */
export interface ActionHandler<L extends Link> {
  /** @throws {WalletRefusal} for what is never approved */
  open(ctx: WalletContext, link: L): Promise<OpenRequest>;
  refuse(ctx: WalletContext, link: L, declining: Declining): Promise<SentRefusal>;
}

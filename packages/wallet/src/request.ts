import type { Action, Address, Link, Refusal, ResultOf } from "@svc/protocol";
import type { Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import type { HistoryEntry } from "./history.ts";
import type { Outcome } from "./outcome.ts";
import type { Requester } from "./requester.ts";

/** What a link asks for, for a person to decide on and for programs to read. */
export interface Description {
  readonly action: Action;
  /** The identity that would answer. */
  readonly identity: Address;
  /** In plain words, one statement a line; every text of others in them went through `shownText`. */
  readonly words: readonly string[];
  readonly requester: Requester;
  /** What has to be accepted besides the approval. */
  readonly concerns: readonly Concern[];
  /** Whether the approval takes the two digits that the page shows. */
  readonly codeNeeded: boolean;
  /** How the answer travels. */
  readonly returnType: string;
  /** Where it goes: the text that is signed. Absent where the answer is only shown. */
  readonly connection?: string;
  /** Unix seconds; absent where nothing is said. */
  readonly expiresAt?: number;
  /** What is asked for, exactly; the members depend on the action. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** The approval of a person, once nothing in it is beside what the request takes. */
export interface CheckedApproval {
  /** The two digits of the page; empty where none are needed. */
  readonly code: string;
  /** Names that are asked for and not given. */
  readonly without: readonly string[];
  /** Names that the person picks, where the link leaves it to them. */
  readonly fields: readonly string[];
  /** The business that is meant, where the person acts for one and said which. */
  readonly business: Address | undefined;
  /** What was shown as the most that a transaction costs; absent where nothing was. */
  readonly feeWeiMax?: bigint;
}

/** What the link alone does not say of a request: an approval is refused where it was shown otherwise. */
export interface Said {
  /** Who asks for what, or on which chain, as one text to compare. */
  readonly terms: string;
  /** What would be given, where fields are asked for, in the same way. */
  readonly given?: string;
  /** The most that a transaction costs. */
  readonly feeWeiMax?: bigint;
}

/** A request that was read, and asked about where a broker can say who asks. */
export type OpenRequest = Opened & (Answered | Claimed);

/** A request that is answered by what was signed. */
interface Answered {
  /** Signs the answer; called once, when every concern is accepted. @throws {WalletRefusal} */
  answer(approval: CheckedApproval): Promise<ResultOf[Action]>;
  /** Carries out what was signed: after the history has it, before the answer goes out. @throws {WalletRefusal} */
  perform?(): Promise<void>;
}

/** A request that is taken, and decided elsewhere. */
interface Claimed {
  /** Takes it; called once, when every concern is accepted. @throws {WalletRefusal} */
  claim(approval: CheckedApproval): Promise<Outcome>;
}

interface Opened {
  readonly description: Description;
  /** Absent where the link itself, or a claim that is kept, says all. */
  readonly said?: Said;
  /** Whether `without` means something here, and `fields`, and `business`. */
  readonly takes?: { readonly without?: true; readonly fields?: true; readonly business?: true };
  /** What the history keeps of the answer, values apart. */
  trace?(approval: CheckedApproval): Trace;
  /** Called last, once the answer was taken: whoever is interrupted before finds all as it was. */
  settled?(): Promise<void>;
}

/** What a request leaves in the history. */
export type Trace = Pick<
  HistoryEntry,
  "id" | "business" | "purpose" | "fields" | "withheld" | "linkHash"
> & {
  /** When it was signed, where that was before. */
  readonly at?: number;
};

/** How a request is turned down. */
export interface Declining {
  /** The person says that somebody else started this. */
  readonly notStarted: boolean;
  /** Sign the refusal also towards somebody unknown, who learns the identity by it. */
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

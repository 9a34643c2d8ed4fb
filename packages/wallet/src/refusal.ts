import { shownText } from "./shown-text.ts";

/** Why this wallet did not do what it was asked to. */
export type RefusalCode =
  /** The text is not a link, or one of its parameters is wrong. */
  | "invalid_link"
  /** What is asked for is never signed at the request of others (decisions, section 3, "Reserved types"). */
  | "invalid_request"
  /** The deadline or the request object has passed. */
  | "expired"
  /** The protocol knows it, this wallet does not. */
  | "unsupported"
  /** No verified field that this wallet holds fits what is required. */
  | "no_matching_data"
  /** The request object is not genuine or does not belong to the link. */
  | "forged_request"
  /** The link is addressed to another identity. */
  | "other_identity"
  /** A second deliberate confirmation is missing; see `ConcernsRefusal`. */
  | "not_accepted"
  /** The digits are not two digits, or none were asked for. */
  | "wrong_code"
  /** The other side answered with an error. */
  | "broker_refused"
  /** No answer, too long an answer, a redirect, or an address without https. */
  | "unreachable"
  /** The chain refused the transaction, or has not included it yet. */
  | "chain_refused"
  | "not_found"
  | "wrong_passphrase"
  /** A name, address or secret given to the wallet has the wrong form, or is taken. */
  | "invalid_input"
  /** A file of the wallet cannot be read. */
  | "damaged_state";

/** The wallet refuses. The message is one line for a person, and is safe to show wherever its parts come from. */
export class WalletRefusal extends Error {
  override name = "WalletRefusal";
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string, options: ErrorOptions = {}) {
    super(shownText(message), options);
    this.code = code;
  }
}

// The rules of a proposal (decisions section 6): which act of governance it is, and by which rule members decide it.
import {
  type Address,
  type BusinessRule,
  type Charter,
  decodeCharter,
  encodeCharter,
  type GovernanceAct,
  governanceActs,
  governanceFunctions,
  type Hex,
  type Hex32,
  isHexOf,
} from "@svc/protocol";
import { invalidRequest } from "../../platform/http/problems.ts";
import { type NamedMember, parseCharter, type RequestedCharter } from "./charter-request.ts";
import type { GovernanceOperation } from "./wallet-calls.ts";

export type ProposalStatus =
  | "open"
  | "relaying"
  | "executed"
  | "refused"
  | "expired"
  | "failed"
  | "retracted";

/** An act of governance that members decide on; its ballot has the same id. */
export interface Proposal {
  readonly id: string;
  readonly business: Address;
  readonly operation: GovernanceOperation;
  /** The arguments of the contract's function (ABI). */
  readonly arguments: Hex;
  /** For a changed charter: the names of its members, sealed. */
  readonly namesSealed: Buffer | null;
  /** For a removal: the member to be removed. */
  readonly member: Address | null;
  readonly proposer: Address;
  /** The nonce of the wallet with which the act is approved; with another one the contract refuses it. */
  readonly nonce: number;
  readonly status: ProposalStatus;
  readonly createdAt: number;
}

/** A proposal as a member's wallet sends it. */
export type ProposalRequest =
  | ({ readonly operation: "changeCharter" } & RequestedCharter)
  | { readonly operation: "moveTo"; readonly successor: string }
  | { readonly operation: "startRemoval"; readonly member: string }
  | { readonly operation: "withdraw"; readonly hash: string };

/** A proposed act, and by which rule it is decided; by default the charter's. */
export interface Planned {
  readonly operation: GovernanceOperation;
  readonly act: GovernanceAct;
  readonly names: readonly NamedMember[] | null;
  readonly member: Address | null;
  readonly rule?: BusinessRule;
}

/** Plans a changed charter, by the stricter of its old and new rule. @throws {Problem} invalid_request */
export function planCharter(
  current: Charter,
  request: Extract<ProposalRequest, { operation: "changeCharter" }>,
): Planned {
  const { charter, members } = parseCharter({
    members: request.members,
    rules: { ...current.rules, ...request.rules },
  });
  const bytes = encodeCharter(charter);
  if (bytes === encodeCharter(current)) throw invalidRequest("that changes nothing");
  const rule = stricterRule(current, charter);
  const act = governanceActs.changeCharter(bytes);
  return { operation: "changeCharter", act, names: members, member: null, rule };
}

const stricterRule = (one: Charter, other: Charter): BusinessRule =>
  [one, other].some(({ rules }) => rules.governance === "UNANIMOUS") ? "UNANIMOUS" : "MAJORITY";

/** @throws {Problem} invalid_request */
export function parseHash(text: string): Hex32 {
  const hash = text.toLowerCase();
  if (!isHexOf(hash, 32)) throw invalidRequest("hash is 32 bytes in hex");
  return hash;
}

/** The act in the form that approvals sign. */
export function actOf({
  operation,
  arguments: args,
}: Pick<Proposal, "operation" | "arguments">): GovernanceAct {
  return { operation: governanceFunctions[operation], arguments: args };
}

/** The rule by which members decide the proposal while the business has this charter. */
export function ruleOf(
  proposal: Pick<Proposal, "operation" | "arguments">,
  charter: Charter,
): BusinessRule {
  if (proposal.operation === "startRemoval") return "MAJORITY";
  const next = charterOf(proposal);
  return next === null ? charter.rules.governance : stricterRule(charter, next);
}

/** The proposed charter; null for another act. */
export function charterOf({
  operation,
  arguments: args,
}: Pick<Proposal, "operation" | "arguments">): Charter | null {
  if (operation !== "changeCharter") return null;
  // `abi.encode` of bytes: offset, length, the bytes themselves.
  const length = Number(`0x${args.slice(2 + 64, 2 + 128)}`);
  return decodeCharter(`0x${args.slice(2 + 128, 2 + 128 + length * 2)}`);
}

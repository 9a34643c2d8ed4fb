// What a batch of orders commits to (decisions section 5, Settlement). No clock, no chance, no database.
import {
  auditLeafOf,
  buildTree,
  type Hex,
  type Hex32,
  orderIdOf,
  orderLeafOf,
  orderPhase,
} from "@svc/protocol";

/** The two phases of a settlement. */
export type Phase = keyof typeof orderPhase;

/** The members of an approved order that its leaf commits to, in both phases. */
export interface Anchor {
  /** The order's row; not part of the leaf. */
  readonly id: string;
  readonly referenceKey: string;
  readonly attempt: number;
  readonly salt: Hex32;
  /** The digest of the user's `Share`, and its member `data`. */
  readonly consent: Hex32;
  readonly data: Hex32;
}

export interface AuditHead {
  readonly hash: Buffer;
  readonly position: number;
}

export interface BatchTree {
  readonly root: Hex32;
  /** One for each order, in the order given; last the head of the audit chain. */
  readonly leaves: readonly Hex32[];
}

/** The leaf of an order in the tree of a phase. */
export function leafOfAnchor(phase: Phase, anchor: Omit<Anchor, "id">): Hex32 {
  return orderLeafOf({
    phase: orderPhase[phase],
    order: orderIdOf(anchor),
    consent: anchor.consent,
    data: anchor.data,
  });
}

/** The tree of a batch: its orders, and the head of the audit chain. */
export function treeOfBatch(phase: Phase, anchors: readonly Anchor[], audit: AuditHead): BatchTree {
  const head: Hex32 = `0x${audit.hash.toString("hex")}`;
  const leaves = anchors.map((anchor) => leafOfAnchor(phase, anchor));
  leaves.push(auditLeafOf({ head, position: audit.position }));
  return { root: buildTree(leaves).root, leaves };
}

/** `initiate(bytes32)` and `confirm(bytes32)` of the contract `Settlement`. */
const selectors: Record<Phase, string> = { initiate: "0x5ede7516", confirm: "0x797af627" };

/** Topic 0 of the events that it emits: `Initiated(address,bytes32)` and `Confirmed(address,bytes32)`. */
export const eventTopics: Record<Phase, Hex32> = {
  initiate: "0x1f6355988d5fc07214ff814e10fc779a2272889802540afb05887ab798849002",
  confirm: "0xe9b6a6673f4cf3a2dd15c13fa7f706b36e0c3a446358082e9bad47b6fb7d35b1",
};

/** The call of `Settlement` that commits to a batch (Solidity ABI). */
export function callOf(phase: Phase, root: Hex32): Hex {
  return `${selectors[phase]}${root.slice(2)}` as Hex;
}

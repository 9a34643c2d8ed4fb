import { leafOf, verifyMerkleProof, type Address, type Hex32 } from "@svc/protocol";

import { judgeFields, readAnchor, readIssuers, type AttestedField } from "./attested-field.ts";
import { openChainView, type ChainAnchors } from "./chain-view.ts";
import { openProof, readFieldProof, refused, type FieldProof } from "./field-proof.ts";
import { commitmentOfValue } from "./commitment.ts";
import { requireGiven } from "./merchant-error.ts";
import { readNow } from "./unix-time.ts";

/** Whose field is to be proved, from your own records: never from the proof. */
export interface ProvedField {
  user: string;
  field: string;
  /** The delivered value and pepper: if given, the value is proved too. Both or neither. */
  value?: { data: string; pepper: Hex32 };
}

/** One thing that is proved; `at` in Unix seconds. Anything that is not in the list is not proved. */
export type ProofFact =
  /** The issuer attested a document of this user that holds this field. */
  | {
      fact: "attested";
      field: string;
      user: Address;
      issuer: Address;
      at: number;
      transactionHash: Hex32;
    }
  /** `value` is what the document says. */
  | { fact: "value"; field: string }
  /** The field counts now: its document is neither expired nor revoked, its issuer not distrusted. */
  | { fact: "live"; field: string; at: number };

/** What a proof proves, and the state of the field now. */
export interface VerifiedProof extends AttestedField {
  user: Address;
  proved: ProofFact[];
}

/**
 * Verifies that one of your issuers attested a field of this user, with only a node of the chain and your own anchors;
 * the service is not asked. The leaf is recomputed from user and field, so a proof of another user, of another field or
 * of a padding leaf does not match. It does not prove that the value is true: for that you believe the issuer.
 *
 * @param proof an entry of what `kyc.proof` returned
 * @throws {MerchantError} proof_refused, its `reason` names the member; chain_unreachable; configuration_invalid
 */
export async function verifyProof(
  proof: unknown,
  expected: ProvedField,
  anchors: ChainAnchors,
): Promise<VerifiedProof> {
  const { chainId } = anchors;
  const now = readNow(anchors.now);
  const registry = readAnchor("registry", anchors.registry);
  const user = readAnchor("user", expected.user);
  requireGiven(expected, ["value"]);
  const read = readFieldProof(openProof(proof));
  requireOwn(read, { ...expected, user, registry, chainId });

  const view = openChainView(anchors);
  if ((await view.chainId()) !== chainId) throw refused("chainId");
  const { issuer, root, transactionHash } = read;
  const [judged] = await judgeFields(view, [read], {
    registry,
    issuers: readIssuers(anchors.issuers),
    now,
    fault: (_, member) => refused(member),
  });
  if (judged === undefined) throw refused("root");
  const event = { name: "Attested", contract: registry, by: issuer, root } as const;
  const found = await view.findEvent(transactionHash, event);
  // The registry stores the time of the event's block. `judgeFields` has checked that it is not in the future.
  if (found?.blockTime !== judged.attestedAt) throw refused("transactionHash");

  const { field, attestedAt } = judged;
  const proved: ProofFact[] = [
    { fact: "attested", field, user, issuer, at: attestedAt, transactionHash },
    ...(expected.value === undefined ? [] : [{ fact: "value", field } as const]),
    ...(judged.standing === "LIVE" ? [{ fact: "live", field, at: now } as const] : []),
  ];
  return { ...judged, user, proved };
}

interface Own extends ProvedField {
  user: Address;
  registry: Address;
  chainId: number;
}

function requireOwn(proof: FieldProof, own: Own): void {
  const { field, commitment, expiresAt, root } = proof;
  const leaf = leafOf({ user: own.user, field: own.field, commitment, expiresAt });
  const checks: [boolean, string][] = [
    [proof.chainId === own.chainId, "chainId"],
    [proof.registry === own.registry, "registry"],
    [field === own.field, "field"],
    [own.value === undefined || commitmentOfValue(own.value) === commitment, "commitment"],
    [proof.leaf === leaf, "leaf"],
    [verifyMerkleProof({ leaf, proof: proof.proof, root }), "proof"],
  ];
  const failed = checks.find(([holds]) => !holds);
  if (failed !== undefined) throw refused(failed[1]);
}

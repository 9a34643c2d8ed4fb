import { businessFieldNames, leafFieldOf, type BusinessFieldName } from "@svc/protocol";

import { readAnchor } from "./attested-field.ts";
import type { ChainAnchors } from "./chain-view.ts";
import { openProof, readPlace, refused, type FieldProof } from "./field-proof.ts";
import type { ReleasedField } from "./kyb-attestation.ts";
import type { Members } from "./members.ts";
import { verifyProof, type VerifiedProof } from "./proof.ts";

/**
 * What anybody needs to check one released field on chain, in addition to whose field it is, its value and its pepper:
 * an entry of `proofs` in the answer of GET /api/v1/kyb/data-requests/<requestId>/proofs. It proves nothing until
 * `verifyCompanyProof` has accepted it.
 */
export interface CompanyProof extends Omit<FieldProof, "field"> {
  name: BusinessFieldName;
  /** Empty for the business itself. */
  subject: string;
}

/** What is to be proved, from the attestation that you verified: never from the proof. */
export interface ProvedCompanyField {
  /** Whose field it is. */
  business: string;
  field: Pick<ReleasedField, "name" | "subject" | "value" | "pepper">;
}

/**
 * In `proved`, `user` is the business, and `field` is the name, or for a person `NAME/subject`, as in the leaf on
 * chain.
 */
export type VerifiedCompanyProof = Omit<VerifiedProof, "field" | "user"> & {
  business: VerifiedProof["user"];
  name: BusinessFieldName;
  subject: string;
};

/**
 * Verifies that one of your issuers attested this value for this business and subject, with only a node of the chain
 * and your own anchors; the service is not asked. It makes the same checks as `verifyProof` for a person's field, and
 * always checks the value.
 *
 * @param proof an entry of what `kyb.proofs` returned
 * @throws {MerchantError} proof_refused, its `reason` names the member; chain_unreachable; configuration_invalid
 */
export async function verifyCompanyProof(
  proof: unknown,
  expected: ProvedCompanyField,
  anchors: ChainAnchors,
): Promise<VerifiedCompanyProof> {
  const business = readAnchor("business", expected.business);
  const { name, subject, value: data, pepper } = expected.field;
  const read = readCompanyProof(openProof(proof));
  if (read.name !== name) throw refused("name");
  if (read.subject !== subject) throw refused("subject");
  const field = leafFieldOf({ name, subject });
  const own = { user: business, field, value: { data, pepper } };
  const { field: _, user: __, ...verified } = await verifyProof({ ...read, field }, own, anchors);
  return { ...verified, business, name, subject };
}

/** Reads a proof as it came from outside; unknown members are ignored. */
export function readCompanyProof(members: Members): CompanyProof {
  return {
    name: members.oneOf("name", businessFieldNames),
    subject: members.anyText("subject"),
    ...readPlace(members),
  };
}

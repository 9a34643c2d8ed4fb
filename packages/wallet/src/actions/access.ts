import { accessDigest, commitmentOf, type AccessLink, type AccessProof } from "@svc/protocol";
import type { ActionHandler } from "../request.ts";
import { isDerivedAnswer, type Source } from "../selection.ts";
import { fieldAction } from "./field-action.ts";

/** `svc:access`: prove that fields are verified. Values stay here, except for the "yes" of a derived field. */
export const accessAction: ActionHandler<AccessLink> = fieldAction({
  mustHold: true,
  verb: "prove",
  what: "The proof",
  sayField: ({ field }) =>
    isDerivedAnswer(field) ? "that the answer is yes" : "that it is verified, without its value",
  showField: ({ field }) => ({ field, opened: isDerivedAnswer(field) }),
  answer: async ({ identity }, released, message) => ({
    proofs: released.map(proofOf),
    signature: await identity.sign(accessDigest(message)),
  }),
});

function proofOf({ field, data, pepper, expiresAt, proof, credential }: Source): AccessProof {
  return {
    field,
    commitment: commitmentOf({ data, pepper }),
    expiresAt,
    root: credential.root,
    proof,
    ...(isDerivedAnswer(field) ? { opening: { data, pepper } } : {}),
  };
}

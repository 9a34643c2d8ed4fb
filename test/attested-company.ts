// What a business released, on a chain of the test's own, made of the protocol's functions.
import { buildTree, commitmentOf, leafFieldOf, leafOf, type Hex32 } from "@svc/protocol";

import type { CompanyProof } from "../packages/merchant/src/index.ts";
import { business } from "../packages/merchant/test/fake-business.ts";
import { callRegistry, issuer, type SettledChain } from "./settled-order.ts";

const pepperOf = (byte: string): Hex32 => `0x${byte.repeat(32)}`;

export const someReleased = [
  { name: "BUSINESS_LEGAL_NAME", subject: "", value: "Muster AG", pepper: pepperOf("01") },
  { name: "BUSINESS_DIRECTOR_NAME", subject: "director-1", value: "Al", pepper: pepperOf("02") },
  { name: "BUSINESS_DIRECTOR_NAME", subject: "director-2", value: "Bo", pepper: pepperOf("03") },
] as const;

type Place = Pick<CompanyProof, "issuer" | "root" | "transactionHash" | "chainId" | "registry">;

/** Attests {@link someReleased} in one tree. @returns their proofs, in their order */
export async function attestCompany(
  chain: SettledChain,
  { chainId, expiresAt }: { chainId: number; expiresAt: number },
): Promise<CompanyProof[]> {
  const openings = someReleased.map(({ name, subject, value, pepper }) => {
    const commitment = commitmentOf({ data: value, pepper });
    const field = leafFieldOf({ name, subject });
    const leaf = leafOf({ user: business, field, commitment, expiresAt });
    return { name, subject, commitment, leaf };
  });
  const tree = buildTree(openings.map(({ leaf }) => leaf));
  const { root } = tree;
  const transactionHash = await callRegistry(chain, "attest", [issuer, [root]]);
  const place: Place = { issuer, root, transactionHash, chainId, registry: chain.registry };
  return openings.map((opening) =>
    Object.assign({ expiresAt, proof: tree.proofOf(opening.leaf) }, place, opening),
  );
}

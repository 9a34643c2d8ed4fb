import type { Clients } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { ClaimSource } from "./business/business-claims.ts";
import type { BusinessDirectory } from "./business/business-directory.ts";
import type { SigningKeys } from "./keys/signing-keys.ts";
import type { RefreshSuccessors } from "./token/refresh-successors.ts";

/** The context of the token side of login. */
export interface TokenContext extends Ctx {
  readonly clients: Clients;
  readonly signingKeys: SigningKeys;
  readonly successors: RefreshSuccessors;
  readonly businesses: BusinessDirectory;
  /** The claims of a token family at this moment; null if it is not live. Concurrent look-ups share a database call. */
  findLiveClaims(familyId: string): Promise<ClaimSource | null>;
}

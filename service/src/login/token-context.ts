import type { Clients } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { ClaimSource } from "./business/business-claims.ts";
import type { BusinessDirectory } from "./business/business-directory.ts";
import type { SigningKeys } from "./keys/signing-keys.ts";
import type { RefreshSuccessors } from "./token/refresh-successors.ts";

/** What the token side of login works with. */
export interface TokenContext extends Ctx {
  readonly clients: Clients;
  readonly signingKeys: SigningKeys;
  readonly successors: RefreshSuccessors;
  readonly businesses: BusinessDirectory;
  /** What a family says now, null when it says nothing any more. Those asked about at the same time share a database call. */
  findLiveClaims(familyId: string): Promise<ClaimSource | null>;
}

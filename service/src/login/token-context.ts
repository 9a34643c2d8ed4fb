import type { Clients } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { BusinessDirectory } from "./business-directory.ts";
import type { SigningKeys } from "./signing-keys.ts";

/** What the token side of login works with. */
export interface TokenContext extends Ctx {
  readonly clients: Clients;
  readonly signingKeys: SigningKeys;
  readonly businesses: BusinessDirectory;
}

import type { Address, RequestObject } from "@svc/protocol";
import type { AccountsContext } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { CredentialsContext } from "../credentials/index.ts";

/** What orders work with: the chain, verified fields, and what `compose.ts` passes from other slices. */
export interface KycContext extends AccountsContext, ChainContext, CredentialsContext {
  /** Signs who asks for what with the key that wallets know (decisions section 3). */
  signRequestObject(claims: RequestObject): string;
  /**
   * Whether the account is asked, as a contract, about a signature: never a business.
   *
   * @param asked.subject what is signed for, such as `order:<id>`; contracts are asked a few times for each
   * @param asked.callerAddress where the signature came from: likewise
   * @throws {Problem} rate_limited
   */
  mayContractSign(asked: {
    readonly address: Address;
    readonly subject: string;
    readonly callerAddress: string;
  }): Promise<boolean>;
}

import type { Address, RequestObject } from "@svc/protocol";
import type { AccountsContext } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { CredentialsContext } from "../credentials/index.ts";

/** What the verbs of this slice need: accounts, chain, verified fields, and functions that `compose.ts` passes in. */
export interface KycContext extends AccountsContext, ChainContext, CredentialsContext {
  /** Signs who asks for what with the key that wallets know (decisions section 3). */
  signRequestObject(claims: RequestObject): string;
  /**
   * Whether to ask a contract at this address if a signature is valid (ERC-1271). Never for a business: it acts by its
   * members. Anybody can send signatures, so the calls are limited per subject and per caller.
   *
   * @param asked.subject what is signed for, such as `order:<hash of the link's token>`
   * @param asked.callerAddress the network address that sent the signature
   * @throws {Problem} rate_limited
   */
  mayContractSign(asked: {
    readonly address: Address;
    readonly subject: string;
    readonly callerAddress: string;
  }): Promise<boolean>;
}

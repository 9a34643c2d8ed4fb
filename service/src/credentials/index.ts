export {
  type AskedName,
  type Asker,
  checkInfos,
  findLiveLeaves,
  findVerified,
  matchLeaves,
  type Verification,
} from "./checks.ts";
export type {
  CredentialsCallbacks,
  CredentialsContext,
  InvalidLeaf,
} from "./credentials-context.ts";
export type { LeafStatus, MatchedLeaf } from "./leaf.ts";

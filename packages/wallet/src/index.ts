export { restoreBackup, writeBackup } from "./backup.ts";
export type { Restored } from "./backup.ts";
export { addBroker, listBrokers, removeBroker } from "./brokers.ts";
export { namedMembersOf } from "./businesses.ts";
export type {
  Founded,
  FoundingPlan,
  ListedProposal,
  NamedMember,
  OwnBusiness,
  Proposal,
  Proposed,
} from "./businesses.ts";
export { ConcernsRefusal, isConcern, sayConcern } from "./concern.ts";
export type { Concern } from "./concern.ts";
export type { EmailVerification } from "./email.ts";
export type { HeldCredential, HeldField } from "./held-credential.ts";
export type { HistoryEntry } from "./history.ts";
export { newMnemonic, openIdentity } from "./identity.ts";
export type { Identity, IdentitySecret } from "./identity.ts";
export type { InboxEntry } from "./inbox.ts";
export type { InboxItem, InboxKind } from "./inbox-item.ts";
export type { Login } from "./logins.ts";
export type { PushDevice } from "./push.ts";
export type { Collection } from "./receive.ts";
export { WalletRefusal } from "./refusal.ts";
export type { RefusalCode } from "./refusal.ts";
export type { Outcome } from "./outcome.ts";
export type { Description } from "./request.ts";
export type { Requester } from "./requester.ts";
export { shownText } from "./shown-text.ts";
export { memoryStorage } from "./storage.ts";
export type { StorageFolder, StorageKey, WalletStorage } from "./storage.ts";
export {
  changePassphrase,
  hasIdentity,
  listIdentities,
  removeIdentity,
  sealIdentity,
  unsealIdentity,
  unsealSecret,
} from "./vault.ts";
export type { VaultContext, VaultEntry } from "./vault.ts";
export { openWallet } from "./wallet.ts";
export type { Decision, VoteOutcome } from "./votes.ts";
export type { Approval, Denial, Wallet, WalletParts } from "./wallet.ts";

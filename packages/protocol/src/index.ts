export type { Action } from "./action.ts";
export {
  addressOfPublicKey,
  addressOfSubject,
  checksumAddress,
  issuerIdentity,
  organizationIdentity,
  parseAddress,
  shortAddress,
  subjectOf,
} from "./address.ts";
export type { Address } from "./address.ts";
export {
  attributeOfField,
  businessAttribute,
  entryOfField,
  fieldNames,
  fieldsOfAttribute,
  fieldsOfName,
  isFieldName,
  isParentName,
  nameOfAttribute,
  parentNames,
} from "./attributes.ts";
export type { FieldEntry, FieldName, FieldType, ParentName, Sensitivity } from "./attributes.ts";
export {
  approvalDigest,
  businessCategory,
  businessLoginHash,
  decodeCharter,
  charterMembersMax,
  defaultGovernanceRule,
  encodeCharter,
  governanceActs,
  governanceFunctions,
  governanceHash,
  hasKey,
  invitationDigest,
  keepDigest,
  releaseHash,
  ruleOfCategory,
  thresholdOf,
} from "./business.ts";
export type {
  Approval,
  BusinessCategory,
  BusinessLoginMessage,
  BusinessRule,
  Charter,
  CharterMember,
  GovernanceAct,
  Invitation,
  ReleaseMessage,
  RuleName,
} from "./business.ts";
export {
  businessFieldNames,
  businessFieldOfHash,
  entryOfBusinessField,
  hashOfBusinessField,
  isBusinessField,
  leafFieldOf,
} from "./business-fields.ts";
export type { BusinessFieldEntry, BusinessFieldName, SubjectType } from "./business-fields.ts";
export {
  accessDigest,
  declineDigest,
  fieldsHash,
  leavesHash,
  loginDigest,
  sessionDigest,
  shareDigest,
  transferDigest,
  zeroHash,
} from "./digests.ts";
export type {
  AccessMessage,
  DeclineMessage,
  LoginMessage,
  SessionMessage,
  ShareMessage,
  TransferMessage,
} from "./digests.ts";
export {
  base64OfBytes,
  base64urlOfBytes,
  bytesOfBase64,
  bytesOfBase64url,
  bytesOfHex,
  bytesOfText,
  canonicalJson,
  hasTooManyValues,
  hexOfBytes,
  isBlank,
  secondsMax,
  isHexOf,
  isRecord,
  isShowable,
  jsonValuesMax,
  lengthOf,
  textOfBytes,
} from "./encoding.ts";
export type { Hex, Hex32 } from "./encoding.ts";
export { textFingerprint } from "./fingerprint.ts";
export { JwsFault, verifyEs256Jws } from "./jws.ts";
export type { EcPublicJwk, Jws } from "./jws.ts";
export { keccak256 } from "./keccak.ts";
export { LEAF_TYPEHASH, commitmentOf, leafOf } from "./leaves.ts";
export type { LeafOpening } from "./leaves.ts";
export {
  buildLink,
  linkInUniversal,
  linkLengthMax,
  parseLink,
  returnTypeOf,
  universalLinkOf,
} from "./link.ts";
export type { Link } from "./link.ts";
export type { AccessLink } from "./links/access.ts";
export type { ReturnType, TransferReturnType } from "./links/connection.ts";
export type { DataTransferLink } from "./links/data-transfer.ts";
export type { LoginLink } from "./links/login.ts";
export type { LinkFault } from "./links/parameters.ts";
export type { RequestLink } from "./links/request.ts";
export type { SignLink } from "./links/sign.ts";
export type { TdLink } from "./links/td.ts";
export type { TxLink } from "./links/tx.ts";
export {
  buildLoginSession,
  claimOf,
  isClaim,
  isLoginId,
  parseLoginSession,
} from "./login-session.ts";
export type { LoginSession } from "./login-session.ts";
export { buildTree, rootOfProof, verifyMerkleProof } from "./merkle.ts";
export type { MerkleTree } from "./merkle.ts";
export { auditLeafOf, orderIdOf, orderLeafOf, orderPhase, referenceKeyOf } from "./order.ts";
export type { OrderPhase } from "./order.ts";
export { checkReceipt, parseReceipt } from "./receipt.ts";
export type { CheckedReceipt, Receipt, ReceiptField, ReceiptPhase } from "./receipt.ts";
export {
  REQUEST_OBJECT_TYP,
  checkRequestObject,
  isOfferConnection,
  originOfConnection,
  requestObjectAudience,
  requestObjectHash,
} from "./request-object.ts";
export type { RequestObject } from "./request-object.ts";
export {
  refusalOf,
  refusalOfMessage,
  refusalOfTypedData,
  reservedTypeHashes,
  siweDomainOf,
  warningsOf,
  warningsOfMessage,
  warningsOfTypedData,
} from "./reserved.ts";
export type { Warning } from "./reserved.ts";
export { buildResult, parseResult, resultLengthMax } from "./results.ts";
export type {
  BusinessPart,
  Delivery,
  LoginResult,
  Received,
  Refusal,
  RefusalReason,
  RequestResult,
  AccessResult,
  ResultOf,
  SignatureResult,
  TransferResult,
  TxResult,
} from "./results.ts";
export { decodeInfos, encodeInfos } from "./results/infos.ts";
export type { Info } from "./results/infos.ts";
export type { ResultFault } from "./results/members.ts";
export type { AccessProof } from "./results/proofs.ts";
export {
  addressOfPrivateKey,
  isContractYes,
  parseSignature,
  personalDigest,
  prepareForFewSignatures,
  recoverAddress,
  signatureCharactersMax,
  signDigest,
} from "./signature.ts";
export type { Signature } from "./signature.ts";
export { businessTypes, svcDomain, svcTypes } from "./svc-types.ts";
export {
  domainSeparator,
  encodeType,
  hashTypedData,
  typeHash,
  typedDataDigest,
} from "./typed-data.ts";
export type { TypedDataDocument } from "./typed-data.ts";
export { TypedDataFault } from "./typed-data-types.ts";
export type { TypedDataField, TypedDataTypes } from "./typed-data-types.ts";
export {
  parseSvcKybSignature,
  parseSvcSignature,
  svcKybSignatureHeader,
  svcSignature,
  svcSignatureHeader,
} from "./webhook.ts";
export type { SvcKybSignature, SvcSignature } from "./webhook.ts";

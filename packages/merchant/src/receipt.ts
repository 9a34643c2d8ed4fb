import {
  checkReceipt,
  parseReceipt,
  parseSignature,
  recoverAddress,
  type Address,
  type CheckedReceipt,
  type EcPublicJwk,
  type FieldName,
  type Hex32,
  type Info,
  type Receipt,
  type ReceiptPhase,
} from "@svc/protocol";

import {
  isAhead,
  judgeFields,
  readAnchor,
  readIssuers,
  type AttestedField,
} from "./attested-field.ts";
import { openChainView, type ChainAnchors, type ChainView } from "./chain-view.ts";
import { commitmentOfValue } from "./commitment.ts";
import { MerchantError, requireGiven } from "./merchant-error.ts";
import { isSignedByBroker, readStatement, type RequestStatement } from "./request-statement.ts";
import { readNow } from "./unix-time.ts";

/** What you know yourself, from the operator's documents and from your own records: never from the receipt. */
export type ReceiptAnchors = ChainAnchors & {
  /** Address of `Settlement`. */
  settlement: string;
  /** The account whose transactions settle: the operator's address, or a list if it has changed. */
  operator: string | readonly string[];
  /** Whose consent it should be. If absent, read `user` of the result. */
  user?: string;
  /** Which order it should be. If absent, read `referenceKey` of the result. */
  referenceKey?: string;
  /** The delivered triples: if given, it is proved that the user consented to exactly these values. */
  infos?: readonly Info[];
  /**
   * Keys of the broker that you stored from `/.well-known/wallet-jwks.json`: if given, one of them must have signed the
   * statement.
   */
  brokerKeys?: readonly EcPublicJwk[];
};

/** One thing that is proved; `at` in Unix seconds. Anything that is not in the list is not proved. */
export type ReceiptFact =
  /**
   * The user signed the release of these fields, in answer to `statement`. With `by: "contract"` the contract at the
   * user's address confirms that now; it may have said otherwise before.
   */
  | { fact: "consent"; user: Address; by: "key" | "contract"; fields: FieldName[] }
  /** One of `brokerKeys` signed what the user was shown. */
  | { fact: "statement_signed" }
  /** `infos` are the values of all these fields. */
  | { fact: "values"; fields: FieldName[] }
  /** The issuer attested the field's document before the operator committed to the consent. */
  | { fact: "attested"; field: string; issuer: Address; at: number }
  /** The field counts now: its document is neither expired nor revoked, its issuer not distrusted. */
  | { fact: "live"; field: string; at: number }
  /** The operator committed to exactly this consent and these leaves, at the latest `at`. */
  | { fact: "initiated"; transactionHash: Hex32; at: number }
  /** The operator committed to having handed the data over, at the latest `at`. */
  | { fact: "confirmed"; transactionHash: Hex32; at: number };

/** What a receipt proves, and of which order and user. */
export interface VerifiedReceipt {
  referenceKey: string;
  /** From 1. */
  attempt: number;
  user: Address;
  statement: RequestStatement;
  /** The state of each released field now. */
  fields: AttestedField[];
  proved: ReceiptFact[];
}

/**
 * Verifies the receipt of an order with only a node of the chain and your own anchors; the service is not asked.
 *
 * It proves that the user consented, and that the operator committed to exactly these leaves no later than the block.
 * It does not prove that the values are true (for that you believe the issuers), that they reached you, or who the
 * person behind the address is. Nor does it prove `livemode`: the issuers that you name decide that.
 *
 * @param receipt as the service returned it, whatever its age
 * @throws {MerchantError} receipt_refused, its `reason` names the member or check; chain_unreachable;
 * configuration_invalid for an anchor that cannot be used, and for an optional one that is passed as undefined
 */
export async function verifyReceipt(
  receipt: unknown,
  anchors: ReceiptAnchors,
): Promise<VerifiedReceipt> {
  requireGiven(anchors, ["user", "referenceKey", "infos", "brokerKeys"]);
  const own = readAnchors(anchors);
  const now = readNow(anchors.now);
  const read = parseReceipt(receipt);
  if ("fault" in read) throw refused(read.fault.member ?? "receipt");
  compareAnchors(read, anchors, own);
  const checked = checkReceipt(read);
  if ("refused" in checked) throw refused(checked.refused);
  const statement = readStatement(read, (claim) => refused(`requestObject.${claim}`));
  const known = compareKnown(read, anchors);

  const view = openChainView(anchors);
  if ((await view.chainId()) !== anchors.chainId) throw refused("chainId");
  const by = await findSigner(view, read, checked);
  const phases = await findPhases(view, read, now);
  const judged = await judgeFields(view, read.fields, {
    ...own,
    now,
    fault: (index, member) => refused(`fields[${index}].${member}`),
  });
  const [{ at }] = phases;
  if (isAhead(statement.issuedAt, at)) throw refused("requestObject.iat");
  requireLiveAt(judged, at);

  const { referenceKey, attempt, user } = read;
  const names = read.fields.map(({ field }) => field);
  const consent: ReceiptFact = { fact: "consent", user, by, fields: names };
  const proved = [consent, ...known, ...factsOf(judged, now), ...phases];
  return { referenceKey, attempt, user, statement, fields: judged, proved };
}

interface OwnAnchors {
  registry: Address;
  settlement: Address;
  operators: ReadonlySet<Address>;
  issuers: ReadonlySet<Address>;
}

function readAnchors(anchors: ReceiptAnchors): OwnAnchors {
  return {
    registry: readAnchor("registry", anchors.registry),
    settlement: readAnchor("settlement", anchors.settlement),
    operators: new Set([anchors.operator].flat().map((each) => readAnchor("operator", each))),
    issuers: readIssuers(anchors.issuers),
  };
}

function compareAnchors(receipt: Receipt, anchors: ReceiptAnchors, own: OwnAnchors): void {
  const user = anchors.user === undefined ? receipt.user : readAnchor("user", anchors.user);
  const checks: [boolean, string][] = [
    [receipt.chainId === anchors.chainId, "chainId"],
    [receipt.registry === own.registry, "registry"],
    [receipt.settlement === own.settlement, "settlement"],
    [own.operators.has(receipt.initiate.operator), "initiate.operator"],
    [own.operators.has((receipt.confirm ?? receipt.initiate).operator), "confirm.operator"],
    [receipt.user === user, "user"],
    [receipt.referenceKey === (anchors.referenceKey ?? receipt.referenceKey), "referenceKey"],
  ];
  const failed = checks.find(([holds]) => !holds);
  if (failed !== undefined) throw refused(failed[1]);
}

/** Compares the receipt with the keys and values that the caller has. */
function compareKnown(receipt: Receipt, { brokerKeys, infos }: ReceiptAnchors): ReceiptFact[] {
  const proved: ReceiptFact[] = [];
  if (brokerKeys !== undefined) {
    if (!isSignedByBroker(receipt, brokerKeys)) throw refused("requestObject.signature");
    proved.push({ fact: "statement_signed" });
  }
  if (infos !== undefined) {
    for (const [index, { field, commitment }] of receipt.fields.entries()) {
      const info = infos.find((each) => each.field === field);
      if (info === undefined || commitmentOfValue(info) !== commitment)
        throw refused(`fields[${index}].commitment`);
    }
    if (infos.length > receipt.fields.length) throw refused("infos");
    proved.push({ fact: "values", fields: receipt.fields.map(({ field }) => field) });
  }
  return proved;
}

/**
 * The signature of a key needs no chain; any other signature is checked by asking the contract at the user's address.
 */
async function findSigner(
  view: ChainView,
  { user, signature }: Receipt,
  { consent }: CheckedReceipt,
): Promise<"key" | "contract"> {
  const parsed = parseSignature(signature);
  if (parsed !== null && recoverAddress(consent, parsed) === user) return "key";
  const given = { address: user, digest: consent, signature };
  if (!(await view.isContractSignature(given))) throw refused("signature");
  return "contract";
}

type PhaseFact = Extract<ReceiptFact, { fact: "initiated" | "confirmed" }>;

async function findPhases(
  view: ChainView,
  receipt: Receipt,
  now: number,
): Promise<[PhaseFact, ...PhaseFact[]]> {
  const find = async (
    fact: PhaseFact["fact"],
    phase: ReceiptPhase,
    member: string,
  ): Promise<PhaseFact> => {
    const { transactionHash, operator, root } = phase;
    const event = {
      name: fact === "initiated" ? "Initiated" : "Confirmed",
      contract: receipt.settlement,
      by: operator,
      root,
    } as const;
    const found = await view.findEvent(transactionHash, event);
    if (found === null) throw refused(`${member}.transactionHash`);
    if (found.blockNumber !== phase.blockNumber) throw refused(`${member}.blockNumber`);
    if (found.blockTime !== phase.blockTime || isAhead(found.blockTime, now))
      throw refused(`${member}.blockTime`);
    return { fact, transactionHash, at: found.blockTime };
  };
  const initiated = await find("initiated", receipt.initiate, "initiate");
  if (receipt.confirm === undefined) return [initiated];
  const confirmed = await find("confirmed", receipt.confirm, "confirm");
  if (confirmed.at < initiated.at) throw refused("confirm.blockTime");
  return [initiated, confirmed];
}

/** Each released field must have been live when the operator committed to it. */
function requireLiveAt(fields: readonly AttestedField[], at: number): void {
  for (const [index, { attestedAt, revokedAt, expiresAt }] of fields.entries()) {
    const isRevoked = revokedAt !== 0 && revokedAt < at;
    if (attestedAt > at || isRevoked) throw refused(`fields[${index}].root`);
    if (expiresAt <= at) throw refused(`fields[${index}].expiresAt`);
  }
}

function factsOf(fields: readonly AttestedField[], now: number): ReceiptFact[] {
  return fields.flatMap(({ field, issuer, attestedAt, standing }) => {
    const attested: ReceiptFact = { fact: "attested", field, issuer, at: attestedAt };
    return standing === "LIVE" ? [attested, { fact: "live", field, at: now }] : [attested];
  });
}

function refused(reason: string): MerchantError {
  return new MerchantError("receipt_refused", { reason });
}

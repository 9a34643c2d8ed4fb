import {
  bytesOfHex,
  checksumAddress,
  hexOfBytes,
  returnTypeOf,
  type Hex,
  type TxLink,
  keccak256,
} from "@svc/protocol";
import { chainIdOf } from "../business-wallet.ts";
import { openChain, type ChainClient, type ChainState } from "../chain.ts";
import { sayConcern, type Concern } from "../concern.ts";
import type { WalletContext } from "../context.ts";
import { isLate, refuseLate, refuseLink } from "../decline.ts";
import { sayIdentity, sayTime } from "../field-request.ts";
import type { HistoryEntry } from "../history.ts";
import { WalletRefusal } from "../refusal.ts";
import type { ActionHandler, CheckedApproval, OpenRequest, Said } from "../request.ts";
import { askRequester, findBroker, requesterOf, sayRequester } from "../requester.ts";
import { sayRoute } from "../return-route.ts";
import { shownText } from "../shown-text.ts";
import {
  findSent,
  forgetSent,
  keepSent,
  traceOfSent,
  type SentTransaction,
} from "./sent-transaction.ts";

/** Everything that is signed. */
interface Draft {
  readonly chainId: number;
  readonly nonce: number;
  readonly gas: bigint;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** `svc:tx`: send a transaction, and answer with its hash once a block includes it. */
export const transactionAction: ActionHandler<TxLink> = {
  async open(ctx, link) {
    const broker = await getChainBroker(ctx, link);
    const chain = openChain(ctx, broker);
    const opened = await findSent(ctx, broker, link);
    let { sent } = opened;
    if (sent === null) await refuseLate(ctx, link);
    const draft = sent === null ? await draftOf(ctx, broker, link) : null;
    return {
      description: await describe(ctx, link, { draft, before: opened.before }),
      ...(draft === null ? {} : { said: saidOf(draft) }),
      async answer(approval) {
        if (sent === null) {
          const signed = await sign(ctx, link, { draft, approval });
          sent = await keepSent(ctx, link, { signed, opened });
        }
        return { txHash: sent.hash, svcID: ctx.identity.address };
      },
      trace: () => traceOfSent(link, sent, opened),
      async perform() {
        if (sent !== null) await sendAndWait(chain, sent);
      },
      // A link that was fully answered may be approved again: then it is a new transaction.
      settled: async () => forgetSent(ctx, link),
    };
  },

  async refuse(ctx, link, declining) {
    const error = (await isLate(ctx, link)) ? "expired" : "access_denied";
    return refuseLink(ctx, link, { error, request: "", declining });
  },
};

/** @throws {WalletRefusal} chain_refused if the chain does not include it, or it fails there */
async function sendAndWait(chain: ChainClient, transaction: SentTransaction): Promise<void> {
  await send(chain, transaction);
  const { hash, isReverted } = await chain.waitFor(transaction.hash);
  if (isReverted)
    throw new WalletRefusal(
      "chain_refused",
      `the transaction ${hash} failed on chain; once that is final, approving the same link signs a new one`,
    );
}

/**
 * Another node may have the transaction that this one refuses, so it stays stored, and the error says what to do.
 */
async function send(chain: ChainClient, { raw, hash }: SentTransaction): Promise<void> {
  try {
    await chain.send(raw, hash);
  } catch (cause) {
    if (!(cause instanceof WalletRefusal) || cause.code !== "chain_refused") throw cause;
    throw new WalletRefusal(
      "chain_refused",
      `${cause.message}; the transaction stays signed, so that it is paid at most once: approve the same link again later`,
      { cause },
    );
  }
}

/** The chain is that of the broker that asks, or else of the first broker on the list. */
async function getChainBroker(ctx: WalletContext, link: TxLink): Promise<string> {
  const broker = (await findBroker(ctx, link)) ?? (await ctx.brokers())[0];
  if (broker === undefined)
    throw new WalletRefusal(
      "unsupported",
      "this wallet knows no broker through which to reach a chain",
    );
  return broker;
}

async function draftOf(ctx: WalletContext, broker: string, link: TxLink): Promise<Draft> {
  const chain = openChain(ctx, broker);
  const chainId = await chainIdOf(ctx, broker);
  const state = await chain.readState(ctx.identity.address);
  const nonce = link.nonce === undefined ? state.nonce : nonceOf(link.nonce, state);
  const price = link.energyPriceWei === undefined ? null : BigInt(link.energyPriceWei);
  // `ep` is the price of a unit: used both as limit and as tip, it is paid exactly.
  const maxFeePerGas = price ?? state.maxFeePerGas;
  const maxPriorityFeePerGas = price ?? state.maxPriorityFeePerGas;
  const gas =
    link.energyLimit === undefined
      ? await chain.estimateGas(callOf(ctx, link))
      : checkedLimit(link.energyLimit, link.data);
  const draft = { chainId, nonce, gas, maxFeePerGas, maxPriorityFeePerGas };
  const total = BigInt(link.valueWei) + feeOf(draft);
  if (state.balanceWei < total)
    throw new WalletRefusal(
      "chain_refused",
      `the account holds ${coins(state.balanceWei)}, but this needs up to ${coins(total)}`,
    );
  return draft;
}

/** A transaction whose gas limit is below its least cost is never mined, whether or not a node accepts it. */
function checkedLimit(energyLimit: string, data: Hex | undefined): bigint {
  const limit = BigInt(energyLimit);
  const least = leastGas(bytesOf(data ?? "0x"));
  if (limit >= least) return limit;
  throw new WalletRefusal("chain_refused", `el: such a transaction needs at least ${least}`);
}

/** The least gas that a call costs: what it costs before its code runs, or the floor of EIP-7623. */
function leastGas(data: Uint8Array): bigint {
  const zeros = data.filter((byte) => byte === 0).length;
  const tokens = zeros + 4 * (data.length - zeros);
  return BigInt(21_000 + 10 * tokens);
}

const feeOf = ({ gas, maxFeePerGas }: Draft): bigint => gas * maxFeePerGas;

function saidOf(draft: Draft): Said {
  return { terms: `chain ${draft.chainId}`, feeWeiMax: feeOf(draft) };
}

/**
 * The highest fee that is paid without having been shown, because the link or the chain may name any. An ordinary
 * transaction costs far less.
 */
const unseenFeeWeiMax = 10n ** 17n;

/**
 * Keeps the fee within what was shown: prices may have risen since.
 *
 * @throws {WalletRefusal} chain_refused; not_accepted if it was not shown, and is high
 */
function boundFee(draft: Draft, { energyPriceWei }: TxLink, { feeWeiMax }: CheckedApproval): Draft {
  if (feeWeiMax === undefined && feeOf(draft) > unseenFeeWeiMax)
    throw new WalletRefusal(
      "not_accepted",
      `the fee is up to ${coins(feeOf(draft))}, and a fee above ${coins(unseenFeeWeiMax)} must be seen first: look at the link before you approve it`,
    );
  if (feeWeiMax === undefined || feeOf(draft) <= feeWeiMax) return draft;
  const maxFeePerGas = feeWeiMax / draft.gas;
  // A price that the wallet chose is twice the current one: half of it still pays for the next block.
  if (energyPriceWei !== undefined || maxFeePerGas * 2n < draft.maxFeePerGas)
    throw new WalletRefusal(
      "chain_refused",
      `the fee is now up to ${coins(feeOf(draft))}, more than was shown: look at the link again`,
    );
  const { maxPriorityFeePerGas: tip } = draft;
  return { ...draft, maxFeePerGas, maxPriorityFeePerGas: tip < maxFeePerGas ? tip : maxFeePerGas };
}

function nonceOf(text: string, { nonce }: ChainState): number {
  const asked = Number(text);
  if (!Number.isSafeInteger(asked) || asked < nonce)
    throw new WalletRefusal("chain_refused", `nc: the account has already used number ${text}`);
  if (asked > nonce)
    throw new WalletRefusal("chain_refused", `nc: the account has to use number ${nonce} first`);
  return asked;
}

function callOf({ identity }: WalletContext, link: TxLink): Record<string, string> {
  const { to, data, valueWei } = link;
  const value = `0x${BigInt(valueWei).toString(16)}`;
  return { from: identity.address, to, value, ...(data === undefined ? {} : { data }) };
}

async function describe(
  ctx: WalletContext,
  link: TxLink,
  { draft, before }: { draft: Draft | null; before: HistoryEntry | null },
): Promise<OpenRequest["description"]> {
  const requester = requesterOf(link, await askRequester(ctx, link));
  const { connection, deadline, to, valueWei, data } = link;
  const isForeign = connection !== undefined && !requester.known;
  const concerns: readonly Concern[] = [
    ...(isForeign ? ["unknown-requester" as const] : []),
    ...concernsOfCall(data),
    ...(draft === null || before === null ? [] : ["paid-before" as const]),
  ];
  const fee = draft === null ? null : feeOf(draft);
  return {
    action: link.action,
    identity: ctx.identity.address,
    words: [
      `${sayRequester(requester)} asks you to send ${coins(BigInt(valueWei))} to ${checksumAddress(to)} ${sayIdentity(ctx)}.`,
      ...concerns
        .filter((concern) => concern !== "paid-before")
        .map((concern) => `Careful: ${sayConcern(concern)}.`),
      ...(before === null ? [] : [sayBefore(before)]),
      fee === null
        ? "It was signed before: approving sends the same transaction, and pays once."
        : `On chain ${draft?.chainId ?? ""}; the fee is at most ${coins(fee)}.`,
      ...(data === undefined ? [] : [`Data: ${data}`]),
      sayRoute("Once the chain has taken it in, its hash", link),
    ].map(shownText),
    requester,
    concerns,
    codeNeeded: false,
    returnType: returnTypeOf(link),
    ...(connection === undefined ? {} : { connection }),
    ...(deadline === undefined ? {} : { expiresAt: deadline }),
    data: {
      to,
      valueWei,
      ...(data === undefined ? {} : { data }),
      ...(draft === null
        ? {}
        : {
            chainId: draft.chainId,
            nonce: draft.nonce,
            energyLimit: draft.gas.toString(),
            energyPriceWei: draft.maxFeePerGas.toString(),
          }),
    },
  };
}

/** Says what was paid before; the present approval pays in addition to it. */
function sayBefore({ at, outcome, txHash = "" }: HistoryEntry): string {
  const by = `at ${sayTime(at)} by ${txHash}`;
  return outcome === "approved"
    ? `Careful: this link was paid before, ${by}; approving it pays again.`
    : `Careful: this link was signed before, ${by}, which this wallet no longer keeps; unless that failed, approving it pays again.`;
}

/** `approve`, `increaseAllowance` and `setApprovalForAll` of tokens: with these the loss comes later, not now. */
const approvalSelectors: ReadonlySet<string> = new Set(["0x095ea7b3", "0x39509351", "0xa22cb465"]);

function concernsOfCall(data: Hex | undefined): readonly Concern[] {
  if (data === undefined || data === "0x") return [];
  return approvalSelectors.has(data.slice(0, 10))
    ? ["contract-call", "token-approval"]
    : ["contract-call"];
}

async function sign(
  ctx: WalletContext,
  link: TxLink,
  { draft, approval }: { draft: Draft | null; approval: CheckedApproval },
): Promise<SentTransaction> {
  if (draft === null) throw new TypeError("a transaction that was sent is not signed again");
  // The library takes a while to load; nothing else needs it.
  const { serializeTransaction } = await import("viem/utils");
  const { to, valueWei, data } = link;
  const transaction = {
    type: "eip1559",
    ...boundFee(draft, link, approval),
    to,
    value: BigInt(valueWei),
    ...(data === undefined ? {} : { data }),
  } as const;
  const digest = keccak256(bytesOf(serializeTransaction(transaction)));
  const signature = await ctx.identity.sign(digest);
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130)];
  const parts = { r: `0x${r}`, s: `0x${s}`, yParity: Number.parseInt(v, 16) % 27 } as const;
  const raw = serializeTransaction(transaction, parts);
  return { raw, hash: hexOfBytes(keccak256(bytesOf(raw))), signedAt: await ctx.now() };
}

function bytesOf(hex: string): Uint8Array {
  const bytes = bytesOfHex(hex);
  if (bytes === null) throw new TypeError("not hex");
  return bytes;
}

/** An amount of the chain's coin with all its digits. */
function coins(wei: bigint): string {
  const digits = wei.toString().padStart(19, "0");
  const fraction = digits.slice(-18).replace(/0+$/, "");
  return `${digits.slice(0, -18)}${fraction === "" ? "" : `.${fraction}`} coins`;
}

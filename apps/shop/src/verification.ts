import {
  MerchantError,
  openKyc,
  standingInfos,
  verifyReceipt,
  verifyWebhook,
  type Kyc,
  type Login,
  type OrderState,
  type RequestedData,
  type Validity,
  type VerifiedReceipt,
} from "@svc/merchant";

import { currentLogin, type Desk } from "./login.ts";
import { openOrders, type Orders } from "./orders.ts";
import { strangerPage, unverifiedPage, verificationPage } from "./verification-page.ts";
import { awaitNews } from "./watches.ts";
import { page, redirect, type Reply, type Visit } from "./web.ts";

/** What the shop needs to ask for verified fields. All of it stays on the server. */
export interface KycOptions {
  /** The API key of the shop's client domain. */
  apiKey: string;
  /** The Source Key of a package that lets each request name its fields. */
  sourceKey: string;
  /** The package's signing key; while it is being changed, its successor too. */
  signingKeys: readonly string[];
  /** Where the values are stored; only the shop's system user can read them. */
  directory: string;
  /** What the shop knows about the chain from the operator's documents. */
  anchors: {
    rpcUrl: string;
    chainId: number;
    registry: string;
    settlement: string;
    operator: string | readonly string[];
    issuers: readonly string[];
  };
}

/** Everything that the shop needs at run time to ask for verified fields. */
export interface Verification {
  options: KycOptions;
  kyc: Kyc;
  orders: Orders;
  /** What the page of one person shows, and of nobody else. Forgotten when the shop closes. */
  notes: Map<string, Notes>;
}

/** The newest of each. */
export interface Notes {
  /** `afterSequence`: the newest event that was known when the order was requested. */
  request?: RequestedData & { afterSequence: number };
  validity?: Validity & { at: number };
  receipt?: VerifiedReceipt & { at: number };
}

/** A desk at which people can be asked. */
export type KycDesk = Desk & { verification: Verification };

export async function openVerification(issuer: string, options: KycOptions): Promise<Verification> {
  return {
    options,
    kyc: openKyc({ issuer, apiKey: options.apiKey }),
    orders: await openOrders(options.directory),
    notes: new Map(),
  };
}

/** What the shop must know, and what it would like to. */
const required = ["IDCARD_DOB", "EMAIL"];
const optional = ["ADDRESS_CITY"];

/** Within 5 to 15 minutes. */
const windowSeconds = 10 * 60;

/** "Verify my age and e-mail": asks for the fields. The same request again brings a new code for the same order. */
export async function startVerification(desk: KycDesk, visit: Visit): Promise<Reply> {
  const { verification, url, now } = desk;
  const login = askerOf(desk, visit);
  if (login === null) return redirect("/verify");
  const { kyc, options, orders } = verification;
  await forgetDeleted(verification, login.user);
  // Read before the request: its own events may come before its answer.
  const afterSequence = orders.findOf(login.user)?.current?.sequence ?? 0;
  const { unverified } = await kyc.verified({ user: login.user, items: required });
  if (unverified.length > 0) return page(unverifiedPage(login.user, unverified));
  try {
    const request = await kyc.requestData({
      user: login.user,
      sourceKey: options.sourceKey,
      callback: `${url}/webhooks/kyc`,
      expiration: now() + windowSeconds,
      fields: required,
      optionalFields: optional,
      purpose: "To sell you coffee liqueur, and to send the receipt",
      returnUrl: `${url}/verify`,
    });
    note(verification, login, { request: { ...request, afterSequence } });
  } catch (error) {
    // Approved a moment ago: the page shows how far it is.
    if (!(error instanceof MerchantError) || error.reason !== "order_ongoing") throw error;
  }
  return redirect("/verify");
}

/**
 * If the service has deleted this person, it does not know their order any more, and nothing they shared still holds. It
 * is forgotten here too: events of a new order count from 1 again and would otherwise look older than those known here.
 */
async function forgetDeleted({ kyc, orders }: Verification, user: string): Promise<void> {
  const order = orders.findOf(user);
  if (order === null || standingInfos(order).length > 0) return;
  try {
    await kyc.status(order.referenceKey);
  } catch (error) {
    if (!(error instanceof MerchantError) || error.reason !== "order_not_found") throw error;
    await orders.forget(order);
  }
}

/** The state of the request, and what was shared, for the person it belongs to. */
export function showVerification(desk: KycDesk, visit: Visit): Reply {
  const { verification, now } = desk;
  const login = currentLogin(desk, visit);
  if (login === null) return page(strangerPage());
  const { orders, notes } = verification;
  const view = {
    user: login.user,
    version: orders.watches.versionOf(login.user),
    order: orders.findOf(login.user),
    notes: notes.get(login.user) ?? {},
    now: now(),
  };
  return { ...page(verificationPage(view)), isLive: true };
}

/** Answers as soon as the person's orders have changed since the page was drawn. */
export async function awaitChange(desk: KycDesk, visit: Visit): Promise<Reply> {
  const login = currentLogin(desk, visit);
  if (login === null) return { status: 403 };
  return awaitNews(desk.verification.orders.watches, login.user, visit);
}

/** The service reports what happened. It repeats the report until it gets a 200, so repeats must do no harm. */
export async function takeWebhook(desk: KycDesk, visit: Visit): Promise<Reply> {
  const { orders, options } = desk.verification;
  const rawBody = await visit.body(webhookBytesMax);
  if (rawBody === null) return { status: 413 };
  const { headers } = visit;
  const { signingKeys } = options;
  try {
    const event = verifyWebhook({ headers, rawBody, signingKeys, now: desk.now() });
    if (event.event !== "unknown") await orders.take(event);
    return { status: 200 };
  } catch (error) {
    if (!(error instanceof MerchantError) || error.code !== "webhook_refused") throw error;
    desk.onFault(error);
    return { status: 400 };
  }
}

/** Enough for 8 MiB of values, encoded twice in Base64. */
const webhookBytesMax = 16 * 1024 * 1024;

/** "Check again": do the stored values still hold? */
export async function checkAgain(desk: KycDesk, visit: Visit): Promise<Reply> {
  const { verification, now } = desk;
  const shared = sharedBy(desk, visit);
  if (shared === null) return redirect("/verify");
  const { login, order } = shared;
  const validity = await verification.kyc.valid({ user: login.user, infos: order.infos });
  note(verification, login, { validity: { ...validity, at: now() } });
  return redirect("/verify#validity");
}

/** "Verify the receipt": the chain says so, not the service. */
export async function checkReceipt(desk: KycDesk, visit: Visit): Promise<Reply> {
  const { verification, now } = desk;
  const shared = sharedBy(desk, visit);
  if (shared === null) return redirect("/verify");
  const { login, order } = shared;
  const { referenceKey, infos } = order;
  // A later attempt that handed nothing over may be anchored: its receipt covers other values.
  const attempt = Math.max(...infos.map((info) => info.attempt));
  const receipt = await verification.kyc.receipt(referenceKey, { attempt });
  const verified = await verifyReceipt(receipt, {
    ...verification.options.anchors,
    user: login.user,
    referenceKey,
    infos: infos.filter((info) => info.attempt === attempt),
    now: now(),
  });
  note(verification, login, { receipt: { ...verified, at: now() } });
  return redirect("/verify#receipt");
}

/**
 * Who presses a button. Null for a guest, and if the button's page is about another person: this one has logged in
 * since, in a second tab of the same browser.
 */
function askerOf(desk: KycDesk, visit: Visit): Login | null {
  const login = currentLogin(desk, visit);
  const meant = visit.url.searchParams.get("for") ?? login?.user;
  return meant === login?.user ? login : null;
}

/** Who asks, and what that person has shared; null for nobody or a person who has shared nothing. */
function sharedBy(desk: KycDesk, visit: Visit): { login: Login; order: OrderState } | null {
  const login = askerOf(desk, visit);
  const order = login === null ? null : desk.verification.orders.findOf(login.user);
  if (login === null || order === null || order.infos.length === 0) return null;
  return { login, order };
}

/** For how many people notes are kept; the oldest make room. */
const notesMax = 10_000;

function note({ notes }: Verification, { user }: Login, more: Notes): void {
  const known = notes.get(user) ?? {};
  const [oldest] = notes.keys();
  if (notes.size >= notesMax && oldest !== undefined) notes.delete(oldest);
  notes.delete(user);
  notes.set(user, { ...known, ...more });
}

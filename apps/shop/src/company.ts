import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import {
  MerchantError,
  openKyb,
  verifyAttestation,
  verifyBusinessSignature,
  verifyKybWebhook,
  verifyWalletChange,
  type Attestation,
  type Kyb,
  type KybEvent,
  type Login,
  type WalletChangedEvent,
} from "@svc/merchant";

import {
  companyAfterMove,
  fieldsAfter,
  isLate,
  openCompanies,
  requestOf,
  type Companies,
} from "./companies.ts";
import { companyPage, guestPage } from "./company-page.ts";
import { writeDurably } from "./durable-file.ts";
import { currentMember, type Desk } from "./login.ts";
import { awaitNews } from "./watches.ts";
import { page, redirect, type Reply, type Visit } from "./web.ts";

/** What the shop needs to deal with companies. All of it stays on the server. */
export interface KybOptions {
  /**
   * The API key of the shop's client domain; its organization may ask for data, including that of persons, and for
   * signatures.
   */
  apiKey: string;
  /** The client domain's UUID. */
  clientDomainId: string;
  /** Where the data of companies is stored; only the shop's system user can read it. */
  directory: string;
  /** From the operator's documents. */
  chain: { rpcUrl: string; chainId: number };
}

/** Everything that the shop needs at run time to deal with companies. */
export interface CompanyRegister {
  options: KybOptions;
  issuer: string;
  kyb: Kyb;
  companies: Companies;
  /** The endpoint's live secret; an older secret ends by itself. */
  secrets: string[];
}

/** A desk at which companies register. */
export type CompanyDesk = Desk & { register: CompanyRegister };

/** What a company signs. */
const terms = "Terms of Corner Coffee for companies, version 1.\nInvoices are due within 30 days.";

/** What the shop must know about a company. */
const required = ["BUSINESS_LEGAL_NAME", "BUSINESS_REGISTRATION_NUMBER", "BUSINESS_DIRECTOR_NAME"];

export async function openRegister(
  options: KybOptions,
  { issuer, url }: { issuer: string; url: string },
): Promise<CompanyRegister> {
  const kyb = openKyb({ issuer, apiKey: options.apiKey });
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const secret = await registerEndpoint(kyb, { url: `${url}/webhooks/kyb`, ...options });
  const companies = await openCompanies(join(options.directory, "companies"));
  return { options, issuer, kyb, companies, secrets: [secret] };
}

/** The secret is shown only once, so it is stored: a start with the same address needs no new one. */
async function registerEndpoint(
  kyb: Kyb,
  { url, directory }: { url: string; directory: string },
): Promise<string> {
  const path = join(directory, "endpoint.json");
  const known = await readEndpoint(path);
  if (known?.url === url) return known.secret;
  const { secret } = await kyb.registerEndpoint(url);
  await writeDurably(path, JSON.stringify({ url, secret }));
  return secret;
}

async function readEndpoint(path: string): Promise<{ url: string; secret: string } | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as { url: string; secret: string };
  } catch {
    return null;
  }
}

/** "Log in for my company": the wallet lets the person pick one, and its other members agree. */
export async function startCompanyLogin(desk: Desk, visit: Visit): Promise<Reply> {
  const { merchant, cookies } = desk;
  const { url, ...pending } = await merchant.login.start({
    scope: "openid offline_access business",
  });
  return redirect(url, cookies.rememberLogin(visit.cookies, { ...pending, isForCompany: true }));
}

/** What the shop knows about the company, for a person who acts for it. */
export async function showCompany(desk: CompanyDesk, visit: Visit): Promise<Reply> {
  const { companies } = desk.register;
  const business = (await currentMember(desk, visit))?.business;
  if (business === undefined) return page(guestPage());
  const company = companies.find(business.id);
  const version = companies.watches.versionOf(business.id);
  const moved = companies.movedHere(business.id);
  return { ...page(companyPage({ business, company, moved, terms, version })), isLive: true };
}

/** Answers as soon as the company has changed since the page was drawn. */
export async function awaitCompanyChange(desk: CompanyDesk, visit: Visit): Promise<Reply> {
  const id = await actingFor(desk, visit);
  if (id === null) return { status: 403 };
  return awaitNews(desk.register.companies.watches, id, visit);
}

/** "Register your company": its members release its data. */
export async function registerCompany(desk: CompanyDesk, visit: Visit): Promise<Reply> {
  const { kyb, companies } = desk.register;
  const id = await actingFor(desk, visit);
  if (id === null) return redirect("/company");
  try {
    const purpose = "To open an account for your company";
    const request = await kyb.requestData({ business: id, fields: required, purpose });
    await noteRequest(companies, id, { kind: "registration", request });
  } catch (error) {
    // Asked a moment ago: the page shows how far it is.
    if (!(error instanceof MerchantError) || error.reason !== "request_already_open") throw error;
  }
  return redirect("/company");
}

/** "Sign our terms": its members sign for it. */
export async function askForSignature(desk: CompanyDesk, visit: Visit): Promise<Reply> {
  const { kyb, companies } = desk.register;
  const id = await actingFor(desk, visit);
  if (id === null) return redirect("/company");
  const known = companies.find(id)?.terms;
  if (known?.status === "pending_approval" || known?.status === "signed")
    return redirect("/company");
  const request = await kyb.requestSignature(
    {
      business: id,
      messageKind: "TEXT",
      message: terms,
      purpose: "Our terms for companies",
    },
    // A second press of the button asks for nothing new.
    { idempotencyKey: `terms-1-${id}-${known?.requestId ?? "first"}` },
  );
  await noteRequest(companies, id, { kind: "terms", request });
  return redirect("/company");
}

/** "This is our company": what it released in its former wallet is carried over to this one. */
export async function continueCompany(desk: CompanyDesk, visit: Visit): Promise<Reply> {
  const { companies } = desk.register;
  const id = await actingFor(desk, visit);
  const from = visit.url.searchParams.get("from");
  const moved = id === null ? [] : companies.movedHere(id);
  const former = moved.find((company) => company.id === from);
  if (id !== null && former !== undefined)
    await companies.change(id, (known) => companyAfterMove(known, former));
  return redirect("/company");
}

/** Records what was asked for, unless an event of the request, or of a later one, came before the answer. */
async function noteRequest(
  companies: Companies,
  id: string,
  asked: {
    kind: "registration" | "terms";
    request: { requestId: string; status: string; createdAt: number };
  },
): Promise<void> {
  const { requestId, status, createdAt } = asked.request;
  const request = { requestId, status, seq: 0, at: createdAt };
  await companies.change(id, (known) =>
    (known[asked.kind]?.requestId ?? "") >= requestId ? known : { ...known, [asked.kind]: request },
  );
}

/**
 * The company that the person acts for. Null for a guest or a person alone, and if the button's page is about another
 * company: somebody has logged in for this one since, in a second tab of the same browser.
 */
async function actingFor(desk: CompanyDesk, visit: Visit): Promise<Login["user"] | null> {
  const id = (await currentMember(desk, visit))?.business?.id ?? null;
  const meant = visit.url.searchParams.get("for") ?? id;
  return meant === id ? id : null;
}

/** The service reports what happened. It repeats the report until it gets a 200, so repeats must do no harm. */
export async function takeKybWebhook(desk: CompanyDesk, visit: Visit): Promise<Reply> {
  const { register, now } = desk;
  const rawBody = await visit.body(webhookBytesMax);
  if (rawBody === null) return { status: 413 };
  try {
    const { headers } = visit;
    const event = verifyKybWebhook({ headers, rawBody, secrets: register.secrets, now: now() });
    if (event.event !== "unknown" && !register.companies.knows(event))
      await takeEvent(register, event, now());
    return { status: 200 };
  } catch (error) {
    const isRefused =
      error instanceof MerchantError &&
      ["webhook_refused", "attestation_refused", "signature_refused"].includes(error.code);
    if (!isRefused) throw error;
    desk.onFault(error);
    return { status: 400 };
  }
}

/** Enough for an attestation of 40 fields of many persons. */
const webhookBytesMax = 4 * 1024 * 1024;

/**
 * Accepts an event once its content is verified: an attestation by its own signature, a business's signature by the
 * chain.
 */
async function takeEvent(
  register: CompanyRegister,
  event: KybEvent | WalletChangedEvent,
  now: number,
): Promise<void> {
  if (event.event === "kyb.business.wallet_address_changed") return takeMove(register, event, now);
  const { companies, issuer, options } = register;
  const released = await verifyReleased(event, { issuer, now, ...options });
  const signature = await verifySigned(register, event);
  await companies.change(event.business, (known) => {
    const fields = released === null ? {} : fieldsAfter(known, released);
    const company = { ...known, ...fields, eventIds: [...known.eventIds, event.eventId] };
    const isData = event.event.startsWith("kyb.data_request.");
    if (isLate(isData ? known.registration : known.terms, event)) return company;
    const request = requestOf(event);
    return isData
      ? { ...company, registration: request }
      : { ...company, terms: { ...request, ...signature } };
  });
}

/**
 * A company says that it continues in another wallet. The shop records that, and believes it once the members of that
 * wallet say so.
 */
async function takeMove(
  { companies, issuer, options }: CompanyRegister,
  event: WalletChangedEvent,
  now: number,
): Promise<void> {
  const checks = { issuer, now, ...options, event };
  const { business, newBusiness } = await verifyWalletChange(event.attestation, checks);
  await companies.change(business, (known) => ({
    ...known,
    eventIds: [...known.eventIds, event.eventId],
    movedTo: newBusiness,
  }));
}

async function verifyReleased(
  event: KybEvent,
  checks: { issuer: string; clientDomainId: string; now: number },
): Promise<Attestation | null> {
  if (event.event !== "kyb.data_request.released") return null;
  return verifyAttestation(event.attestation ?? "", { ...checks, event });
}

async function verifySigned(
  { options }: CompanyRegister,
  event: KybEvent,
): Promise<{ signature: string; transactionHash: string } | null> {
  if (event.event !== "kyb.signature_request.signed") return null;
  const { signature = "" } = event;
  await verifyBusinessSignature(
    signature,
    { message: terms },
    { ...options.chain, business: event.business },
  );
  return { signature, transactionHash: String(event.data["transaction_hash"]) };
}

import { join } from "node:path";

import type { Attestation, KybEvent, ReleasedField } from "@svc/merchant";

import { openDirectory, writeDurably } from "./durable-file.ts";
import { openWatches, type Watches } from "./watches.ts";

/** The state of a request to a company. */
export interface CompanyRequest {
  requestId: string;
  /** `pending_approval`, then the outcome. */
  status: string;
  reason?: string;
  /** The `seq` of the event that said so. */
  seq: number;
  /** Unix seconds. */
  at: number;
}

/** What the shop knows about a company, by its identity. */
export interface Company {
  id: string;
  /** "Register your company". */
  registration?: CompanyRequest;
  fields?: ReleasedField[];
  /** The request that they were released to; absent if they come from the company's previous wallet. */
  fieldsOf?: string;
  /** "Sign our terms". */
  terms?: CompanyRequest & { signature?: string; transactionHash?: string };
  /** The wallet in which it continues, as the service signed. Nobody asked the company of that wallet. */
  movedTo?: string;
  /** Ids of the events that were processed: a repeated event is not even examined. */
  eventIds: string[];
}

/**
 * What companies released to the shop and signed. This shop keeps a file for each; as for orders, only one process may
 * use the directory. Yours would use its database.
 */
export interface Companies {
  find: (id: string) => Company | null;
  /** The companies that released something and say that they continue in this wallet, perhaps by way of others. */
  movedHere: (id: string) => Company[];
  /** Whether this event has been processed before. */
  knows: (event: Pick<KybEvent, "business" | "eventId">) => boolean;
  /** Changes what is known about a company; once the promise resolves, the change survives a power cut. */
  change: (id: string, next: (known: Company) => Company) => Promise<void>;
  /** By the company's wallet. */
  watches: Pick<Watches, "versionOf" | "next">;
}

export async function openCompanies(directory: string): Promise<Companies> {
  const stored = await openDirectory<Company>(directory);
  const companies = new Map(stored.map((company) => [company.id, company]));
  const watches = openWatches();
  let writing: Promise<void> = Promise.resolve();

  const change: Companies["change"] = (id, next) => {
    const write = async (): Promise<void> => {
      const company = next(companies.get(id) ?? { id, eventIds: [] });
      await writeDurably(join(directory, `${id}.json`), JSON.stringify(company));
      companies.set(id, company);
      // The page of the new wallet also asks about this company.
      for (const wallet of walletsOf(companies, id)) watches.wake(wallet);
    };
    // One after the other: two events of one company must not overwrite each other.
    const changed = writing.then(write);
    writing = changed.catch(() => undefined);
    return changed;
  };

  return {
    find: (id) => companies.get(id) ?? null,
    movedHere: (id) => findMoved([...companies.values()], id),
    knows: (event) => companies.get(event.business)?.eventIds.includes(event.eventId) === true,
    change,
    watches,
  };
}

function findMoved(companies: Company[], id: string): Company[] {
  const wallets = new Set([id]);
  // Wallets that are added meanwhile are visited in their turn.
  for (const wallet of wallets)
    for (const company of companies) if (company.movedTo === wallet) wallets.add(company.id);
  return companies.filter(
    (company) => company.id !== id && wallets.has(company.id) && company.fields !== undefined,
  );
}

/** A company that continues in another wallet, with what it released. What it signed counts only for the old wallet. */
export function companyAfterMove(known: Company, { registration, fields }: Company): Company {
  return {
    ...(registration?.status === "released" && { registration }),
    ...(fields !== undefined && { fields }),
    // What the new wallet did itself takes precedence.
    ...known,
  };
}

/** Whether an event is late or repeated: more is known about its request, or about a later one. */
export function isLate(known: CompanyRequest | undefined, event: KybEvent): boolean {
  if (known?.requestId === event.requestId) return known.seq >= event.seq;
  // Ids of requests sort by the time at which they were made.
  return known !== undefined && known.requestId > event.requestId;
}

/**
 * What to keep of a release: it was paid for, so it counts even if it comes late, unless a later request released
 * something as well.
 */
export function fieldsAfter(
  known: Company,
  { requestId, fields }: Pick<Attestation, "requestId" | "fields">,
): Pick<Company, "fields" | "fieldsOf"> {
  return (known.fieldsOf ?? "") > requestId ? {} : { fields, fieldsOf: requestId };
}

/** The state of a request according to an event of it: by the event's kind, since that is what was verified. */
export function requestOf(event: KybEvent): CompanyRequest {
  const { requestId, reason, seq, timestamp: at } = event;
  const status = event.event.slice(event.event.lastIndexOf(".") + 1);
  return { requestId, status, seq, at, ...(reason !== undefined && { reason }) };
}

/** The wallet of a company, and those that it has moved to since. */
function walletsOf(companies: ReadonlyMap<string, Company>, id: string): ReadonlySet<string> {
  const wallets = new Set<string>();
  let wallet: string | undefined = id;
  while (wallet !== undefined && !wallets.has(wallet)) {
    wallets.add(wallet);
    wallet = companies.get(wallet)?.movedTo;
  }
  return wallets;
}

import type { Profile } from "../platform/config/config.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { parseUuid, uuidv7 } from "../platform/ids.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import type { OutboundResult } from "../platform/outbound/outbound.ts";
import {
  type ClientDomain,
  isProofWaived,
  isVerified,
  parseCallbackHosts,
  parseDomain,
  parseEnvironment,
  proofOf,
} from "./client-domain.ts";
import * as store from "./client-domain-store.ts";
import { getOrganization, lockOrganization } from "./organizations.ts";

const domainsMax = 100;
const proofTokenBytes = 24;
/** A proof is one short line; a longer answer is not a proof. */
const proofBytesMax = 1024;
const proofTimeoutMs = 5_000;
const checkEverySeconds = 86_400;
/** Spreads the checks, so that domains that were added together are not always checked together. */
const checkSpreadSeconds = 3_600;

/** How the proof was found; `waived` on a developer's own machine. */
export type ProofFound = "dns" | "well-known" | "waived";

/**
 * Adds a site. Its environment never changes.
 *
 * @throws {Problem} invalid_request, organization_not_found, domain_exists, too_many (100 domains)
 */
export async function createDomain(
  ctx: Ctx,
  given: { organizationId: string; domain: string; environment: string },
  actor: string,
): Promise<ClientDomain> {
  const { profile } = ctx.config;
  const domain = parseDomain(given.domain, profile);
  const environment = parseEnvironment(given.environment);
  const id = uuidv7(ctx.clock, ctx.random);
  await ctx.db.transaction(async (tx) => {
    const organizationId = await lockOrganization(tx, given.organizationId);
    const known = await store.listDomains(tx, organizationId);
    if (known.length >= domainsMax)
      throw new Problem("too_many", {
        message: `an organization has at most ${domainsMax} client domains`,
      });
    const isNew = await store.insertDomain(tx, {
      id,
      organizationId,
      domain,
      environment,
      proofToken: ctx.random.bytes(proofTokenBytes).toString("base64url"),
      provedAt: null,
      checkedAt: null,
      failingSince: null,
      createdAt: ctx.clock.now(),
    });
    if (!isNew) throw new Problem("domain_exists");
    await ctx.audit.record(tx, {
      actor,
      action: "client-domain.create",
      subject: id,
      details: { organizationId, domain, environment },
    });
  });
  return getDomain(ctx, id);
}

/**
 * Moves a site of this machine to another of its ports, with everything that belongs to it. A site that had to prove
 * its name can never be renamed: the proof was for that name.
 *
 * @throws {Problem} invalid_request if either name has to be proved, client_domain_not_found, domain_exists
 */
export async function moveLocalDomain(
  ctx: Ctx,
  given: { id: string; domain: string },
  actor: string,
): Promise<void> {
  const { profile } = ctx.config;
  const domain = parseDomain(given.domain, profile);
  const known = await getDomain(ctx, given.id);
  if (!isProofWaived(known.domain, profile) || !isProofWaived(domain, profile))
    throw invalidRequest("only a domain on this machine can be moved, and only on this machine");
  if (known.domain === domain) return;
  await ctx.db.transaction(async (tx) => {
    await lockOrganization(tx, known.organizationId);
    if (!(await store.renameDomain(tx, known.id, domain))) throw new Problem("domain_exists");
    await store.announceDomain(tx, known.id);
    await ctx.audit.record(tx, {
      actor,
      action: "client-domain.move",
      subject: known.id,
      details: { from: known.domain, to: domain },
    });
  });
}

/**
 * Sets the only hosts that callbacks of the domain's orders may have, or allows any host (null). Orders that wait keep
 * their callback. With a list, whoever steals an API key cannot have an order's data sent elsewhere; the list does not
 * restrict what the key can read, nor the endpoint of business events.
 *
 * @throws {Problem} invalid_request, client_domain_not_found
 */
export async function limitCallbackHosts(
  ctx: Ctx,
  given: { id: string; hosts: readonly string[] | null },
  actor: string,
): Promise<ClientDomain> {
  const hosts = given.hosts === null ? null : parseCallbackHosts(given.hosts, ctx.config.profile);
  const { id } = await getDomain(ctx, given.id);
  await ctx.db.transaction(async (tx) => {
    await store.setCallbackHosts(tx, { id, hosts });
    await ctx.audit.record(tx, {
      actor,
      action: "client-domain.callback-hosts",
      subject: id,
      details: { hosts: hosts ?? "any" },
    });
  });
  return getDomain(ctx, id);
}

/** Whether the domain is verified at this moment, by {@link isVerified}. */
export function isVerifiedNow(
  { config, clock }: Pick<Ctx, "config" | "clock">,
  domain: Pick<ClientDomain, "domain" | "provedAt">,
): boolean {
  return isVerified(domain, { profile: config.profile, now: clock.now() });
}

/** @throws {Problem} client_domain_not_found */
export async function getDomain(ctx: Ctx, id: string): Promise<ClientDomain> {
  const uuid = parseUuid(id);
  const domain = uuid === null ? null : await store.findDomain(ctx.db, uuid);
  if (domain === null) throw new Problem("client_domain_not_found");
  return domain;
}

/** @throws {Problem} organization_not_found */
export async function listDomains(ctx: Ctx, organizationId: string): Promise<ClientDomain[]> {
  const { id } = await getOrganization(ctx, organizationId);
  return store.listDomains(ctx.db, id);
}

/**
 * Looks for the proof of a domain now: the TXT record or the well-known file of {@link proofOf}.
 *
 * @throws {Problem} client_domain_not_found, proof_missing (with where it was looked for)
 */
export async function proveDomain(ctx: Ctx, id: string, actor: string): Promise<ProofFound> {
  const domain = await getDomain(ctx, id);
  if (isProofWaived(domain.domain, ctx.config.profile)) return "waived";
  const { found, site } = await lookForProof(ctx, domain);
  const news = await ctx.db.transaction(async (tx) => {
    if (found !== null)
      await ctx.audit.record(tx, {
        actor,
        action: "client-domain.prove",
        subject: domain.id,
        details: { by: found },
      });
    return recordCheck(ctx, tx, { domain, found, leaseId: null });
  });
  logNews(ctx, domain, news);
  if (found !== null) return found;
  const { txtName, url, content } = proofOf(domain);
  throw new Problem("proof_missing", {
    message: `the proof was not found: neither a TXT record "${content}" at ${txtName} nor a file with just that at ${url}, which ${inWords(site)}`,
    details: { txtName, url, content },
  });
}

/**
 * Checks again every proved domain that is due, a batch at a time; several processes share the work. A check that fails
 * is repeated the next day, and the domain counts as unverified once seven days have passed without a proof.
 *
 * @returns how many were checked; at most 20 a call, so call again while it is not 0
 */
export async function recheckDomains(ctx: Ctx): Promise<number> {
  const leaseId = uuidv7(ctx.clock, ctx.random);
  const now = ctx.clock.now();
  const domains = await store.leaseDueDomains(ctx.db, {
    id: leaseId,
    now,
    until: now + leaseSeconds,
    limit: batchSize,
  });
  await Promise.all(domains.map(async (domain) => recheck(ctx, domain, leaseId)));
  return domains.length;
}

const batchSize = 20;
/** Far longer than the two lookups take; after a crash another process checks again. */
const leaseSeconds = 60;

async function recheck(ctx: Ctx, domain: ClientDomain, leaseId: string): Promise<void> {
  const { found } = await lookForProof(ctx, domain);
  const check = { domain, found, leaseId };
  logNews(ctx, domain, await ctx.db.transaction(async (tx) => recordCheck(ctx, tx, check)));
}

/** What a check may reveal, by its name in the audit trail, with the warning for the operator. */
const warnings = {
  "client-domain.proof-found": null,
  "client-domain.proof-lost": "the proof of a domain was not found any more",
  "client-domain.proof-lapsed":
    "a domain is unverified: its proof has not been found for seven days",
} as const;

type News = keyof typeof warnings;

function logNews({ log }: Ctx, { id }: ClientDomain, news: readonly News[]): void {
  for (const each of news) {
    const line = warnings[each];
    if (line !== null) log.warn({ clientDomainId: id }, line);
  }
}

/** @param before the domain before this check; one that was never proved has no news */
function newsOf(
  before: ClientDomain,
  { found, profile, now }: { found: ProofFound | null; profile: Profile; now: number },
): News[] {
  if (before.provedAt === null) return [];
  const wasFailing = before.failingSince !== null;
  if (found !== null) return wasFailing ? ["client-domain.proof-found"] : [];
  const wasVerified = isVerified(before, { profile, now: before.checkedAt ?? now });
  const isLapsed = wasVerified && !isVerified(before, { profile, now });
  return [
    ...(wasFailing ? [] : (["client-domain.proof-lost"] as const)),
    ...(isLapsed ? (["client-domain.proof-lapsed"] as const) : []),
  ];
}

/** Records a check. @returns its news, which the audit trail then has */
async function recordCheck(
  ctx: Ctx,
  tx: Queryable,
  {
    domain,
    found,
    leaseId,
  }: { domain: ClientDomain; found: ProofFound | null; leaseId: string | null },
): Promise<News[]> {
  const now = ctx.clock.now();
  const isProved = found !== null;
  const before = await store.recordCheck(tx, {
    id: domain.id,
    isProved,
    now,
    nextCheckAt: now + checkEverySeconds + ctx.random.below(checkSpreadSeconds),
    leaseId,
  });
  if (before === null) return [];
  const known = { ...domain, ...before };
  const { profile } = ctx.config;
  // Cached clients and keys are read again only when the domain becomes verified; the end of that follows from the
  // time.
  if (isProved && !isVerified(known, { profile, now })) await store.announceDomain(tx, domain.id);
  const news = newsOf(known, { found, profile, now });
  for (const action of news)
    await ctx.audit.record(tx, { actor: "system", action, subject: domain.id });
  return news;
}

/** @returns also the answer to the request for the file, `site` */
async function lookForProof(
  ctx: Ctx,
  domain: ClientDomain,
): Promise<{ found: ProofFound | null; site: OutboundResult }> {
  const { txtName, url, content } = proofOf(domain);
  const [records, site] = await Promise.all([
    ctx.resolveTxt(txtName, { timeoutMs: proofTimeoutMs }),
    ctx.outbound.send({
      method: "GET",
      url,
      timeoutMs: proofTimeoutMs,
      responseBytesMax: proofBytesMax,
    }),
  ]);
  if (records.some((record) => record.trim() === content)) return { found: "dns", site };
  const isOnSite =
    site.kind === "answered" &&
    site.status === 200 &&
    new TextDecoder().decode(site.body).trim() === content;
  return { found: isOnSite ? "well-known" : null, site };
}

const failures: Record<Extract<OutboundResult, { kind: "failed" }>["reason"], string> = {
  blocked: "leads to an address that is not public",
  unreachable: "cannot be reached, or whose certificate is not trusted",
  timeout: `did not answer within ${proofTimeoutMs / 1000} s`,
  too_large: "answered too much",
};

/** Why the file proves nothing. Only for the operator: it would tell anybody else what is in this network. */
function inWords(site: OutboundResult): string {
  if (site.kind === "failed") return failures[site.reason];
  return site.status === 200 ? "answered something else" : `answered ${site.status}`;
}

import { type Address, type FieldName, type Hex32, hexOfBytes, parseAddress } from "@svc/protocol";
import { createHash, randomBytes } from "node:crypto";
import { createApiKey, createDomain, createOrganization, openApiKeys } from "../accounts/index.ts";
import type { Chain, FinalTransaction } from "../chain/index.ts";
import { createAudit } from "../platform/audit/audit.ts";
import { parseConfig } from "../platform/config/config.ts";
import type { Ctx } from "../platform/context.ts";
import { openDb } from "../platform/database/db.ts";
import { createHttp, type Http } from "../platform/http/http.ts";
import { openInstallationKeys } from "../platform/cryptography/installation-keys.ts";
import { createLog } from "../platform/telemetry/log.ts";
import type { Message } from "../platform/mail.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { openNotifications } from "../platform/database/notifications.ts";
import { createOutbound } from "../platform/outbound/outbound.ts";
import { Problem } from "../platform/http/problems.ts";
import { createRandom } from "../platform/cryptography/random.ts";
import { createRateLimiter } from "../platform/rate-limit.ts";
import { createSeal } from "../platform/cryptography/seal.ts";
import { countWithoutNotes } from "../platform/database/test-call-count-store.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { sendToRegistry } from "./batches.ts";
import { collectCredential, listOwnCredentials } from "./collection.ts";
import {
  type Credentials,
  credentialFinalHandlers,
  credentialRoutes,
  type CredentialsContext,
  credentialWalletRoutes,
  type InvalidLeaf,
  issueCredential,
  openCredentials,
} from "./index.ts";
import type { GivenCredential } from "./issue.ts";
import type { Issuer } from "./issuer.ts";
import { insertTestBusiness, lockTestBusiness, takeQueued } from "./test-credentials-store.ts";

/** One process of the slice over a real database. There is no chain: `settle` makes queued transactions final. */
export interface TestCredentials extends AsyncDisposable {
  readonly ctx: CredentialsContext;
  readonly http: Http;
  readonly live: TestDomain;
  readonly sandbox: TestDomain;
  /** What `onInvalidated` was called with. */
  readonly invalidated: InvalidLeaf[];
  /** What `onCompanyRecord` was called with. */
  readonly companies: ToldCompany[];
  /** Messages that were sent. */
  readonly messages: Message[];
  /** Sets who may ask about whom; by default everybody may. */
  setMayAsk(rule: (organizationId: string, user: Address) => boolean): void;
  /** Sets the leaves that organizations were given. */
  setDelivered(leaves: readonly Hex32[]): void;
  advance(seconds: number): void;
  /** Runs the registry job, and makes everything queued final with this status; by default, roles always succeed. */
  settle(status?: TestEnd): Promise<SettledTransaction[]>;
  call(request: TestCall): Promise<TestAnswer>;
}

/** An argument of `onCompanyRecord`. */
export type ToldCompany = Parameters<CredentialsContext["onCompanyRecord"]>[1];

export interface TestDomain {
  readonly organizationId: string;
  readonly apiKey: string;
}

/** The status of all transactions except those for roles, or a function that decides by kind. */
type TestEnd = FinalTransaction["status"] | ((kind: string) => FinalTransaction["status"]);

/** A transaction that was sent to the registry. */
export interface SettledTransaction {
  readonly kind: string;
  readonly subjectId: string;
  readonly data: string;
}

export interface TestCall {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** An API key; or, below `/w/`, the identity that calls. */
  readonly as?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export interface TestAnswer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: Record<string, unknown>;
}

const startMs = 1_800_000_000_000;

export async function openTestCredentials(
  environment: NodeJS.ProcessEnv = {},
): Promise<TestCredentials> {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await openTestDatabase());
  let nowMs = startMs;
  const clock = { nowMs: () => nowMs, now: () => Math.floor(nowMs / 1000) };
  const config = parseConfig({ PORT: "4000", LOG_LEVEL: "silent", CHAIN: "on", ...environment });
  const db = countWithoutNotes(stack.use(openDb({ ...database.connection, connections: 6 })));
  const base = {
    config,
    db,
    clock,
    notifications: stack.use(await openNotifications(db, { onFault: () => undefined })),
    random: createRandom(),
    seal: createSeal(["5a".repeat(32)]),
    log: createLog({ level: "silent" }),
    metrics: createMetrics(),
    outbound: createOutbound({ profile: "dev", ownHosts: [] }),
    resolveTxt: async () => [],
    limits: createRateLimiter({ db, clock }, { limitLoopback: config.limitLoopback }),
  };
  stack.defer(async () => base.outbound.close());
  const keys = await openInstallationKeys(base);
  const withKeys: Ctx = { ...base, keys, audit: createAudit({ ...base, keys }) };
  const apiKeys = stack.use(await openApiKeys(withKeys));
  const invalidated: InvalidLeaf[] = [];
  const messages: Message[] = [];
  const companies: ToldCompany[] = [];
  let mayAsk = everybody;
  let delivered: readonly Hex32[] = [];
  const opened: Credentials = stack.use(
    await openCredentials(
      { ...withKeys, apiKeys, chain: testChain },
      {
        mayAsk: async (organizationId, user) => mayAsk(organizationId, user),
        listHandedOver: async () => delivered,
        onInvalidated: async (_tx, leaves) => void invalidated.push(...leaves),
        holdCompany: lockTestBusiness,
        onCompanyRecord: async (_tx, company) => void companies.push(company),
        onCompanyRecordOver: async () => undefined,
      },
    ),
  );
  const send = async (message: Message): Promise<void> => void messages.push(message);
  const ctx: CredentialsContext = { ...opened, mailer: { send, close: () => undefined } };
  const http = await openHttp(ctx);
  stack.defer(async () => http.close());
  const live = await addDomain(ctx, "live");
  const sandbox = await addDomain(ctx, "sandbox");
  const closing = stack.move();
  return {
    ctx,
    http,
    live,
    sandbox,
    invalidated,
    companies,
    messages,
    setMayAsk: (rule) => void (mayAsk = rule),
    setDelivered: (leaves) => void (delivered = leaves),
    advance: (seconds) => void (nowMs += seconds * 1000),
    settle: async (end) => settleWithoutChain(ctx, end),
    call: async (request) => call(http, request),
    [Symbol.asyncDispose]: async () => closing.disposeAsync(),
  };
}

const everybody = (_organizationId: string, _user: Address): boolean => true;

/** What this slice uses of the chain: addresses, no connection. */
const testChain = {
  chainId: 31_337,
  contracts: {
    registry: `0x${"a1".repeat(20)}`,
    settlement: `0x${"a2".repeat(20)}`,
    factories: { live: `0x${"a3".repeat(20)}`, sandbox: `0x${"a4".repeat(20)}` },
  },
  operator: `0x${"a3".repeat(20)}`,
  confirmations: 1,
  // Answers of an empty registry.
  node: { request: async () => `0x${"0".repeat(3 * 64)}` },
} as unknown as Chain;

async function openHttp(ctx: CredentialsContext): Promise<Http> {
  const http = createHttp(ctx);
  await credentialRoutes(ctx, http);
  await http.register(async (plain) => {
    credentialWalletRoutes(ctx, plain, async (authorization) => {
      const user = parseAddress(authorization ?? "");
      if (user === null) throw new Problem("wallet_session_required");
      return user;
    });
  });
  await http.ready();
  return http;
}

async function addDomain(ctx: Ctx, environment: "live" | "sandbox"): Promise<TestDomain> {
  const { id: organizationId } = await createOrganization(ctx, { name: environment }, "test");
  const { id: clientDomainId } = await createDomain(
    ctx,
    { organizationId, domain: "shop.example.com", environment },
    "test",
  );
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "backend" }, "test");
  return { organizationId, apiKey };
}

/**
 * Runs the registry job and makes its transactions final, without a chain: afterwards what was issued is valid. Also
 * for tests of slices that use credentials.
 */
export async function settleWithoutChain(
  given: Ctx,
  end: TestEnd = "succeeded",
): Promise<SettledTransaction[]> {
  const ctx = { ...given, chain: testChain };
  const settled: SettledTransaction[] = [];
  const handlers = credentialFinalHandlers(ctx);
  // The first round grants roles; the roots that wait for them are sent in the second.
  for (let round = 0; round < 2; round += 1) {
    await sendToRegistry(ctx);
    await ctx.db.transaction(async (tx) => {
      for (const { id, kind, subjectId, data } of await takeQueued(tx)) {
        const hash = hexOfBytes(createHash("sha256").update(`${kind}:${subjectId}`).digest());
        const block = { blockNumber: 1, blockTime: ctx.clock.now(), signer: testChain.operator };
        const status = endOf(end, kind);
        await handlers[kind]?.(tx, [{ id, kind, subjectId, hash, status, ...block }]);
        settled.push({ kind, subjectId, data: `0x${data.toString("hex")}` });
      }
    });
  }
  return settled;
}

function endOf(end: TestEnd, kind: string): FinalTransaction["status"] {
  if (typeof end === "function") return end(kind);
  return kind === "registry.role" ? "succeeded" : end;
}

async function call(http: Http, { method, url, as, body, headers }: TestCall): Promise<TestAnswer> {
  const answer = await http.inject({
    method,
    url,
    headers: { ...(as === undefined ? {} : { authorization: as }), ...headers },
    ...(body === undefined ? {} : { payload: body as Record<string, unknown> }),
  });
  const text: unknown = answer.body === "" ? {} : answer.json();
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: text as Record<string, unknown>,
  };
}

/** An unknown identity. */
export function someUser(): Address {
  return hexOfBytes(randomBytes(20));
}

/** Inserts a business with one invented member, as a record needs it. */
export async function someBusiness(
  { ctx }: Pick<TestCredentials, "ctx">,
  environment: "live" | "sandbox" = "live",
): Promise<Address> {
  const address = someUser();
  await insertTestBusiness(ctx.db, { address, environment, now: ctx.clock.now() });
  return address;
}

/** A field as its wallet keeps it. */
export interface HeldField {
  readonly field: FieldName;
  readonly data: string;
  readonly pepper: Hex32;
  readonly expiresAt: number;
  readonly proof: readonly Hex32[];
}

/** A year from the start of the tests. */
export const inAYear = startMs / 1000 + 365 * 86_400;

/** Issues a credential and collects its values as the wallet does; it is live unless `settles` is false. */
export async function giveCredential(
  test: TestCredentials,
  issuer: Issuer,
  given: Partial<GivenCredential> & { readonly user: Address; readonly settles?: boolean },
): Promise<{ id: string; root: Hex32; held: HeldField[] }> {
  const { id, root } = await issueCredential(test.ctx, issuer, {
    document: "IDCARD",
    fields: [{ field: "IDCARD_DOB", data: "1990-05-17" }],
    expiresAt: inAYear,
    ...given,
  });
  if (given.settles !== false) await test.settle();
  const { items } = await listOwnCredentials(test.ctx, given.user, { before: null, limit: 100 });
  const held = (items.find((item) => item.id === id)?.fields ?? []).map(
    ({ field, expiresAt, data, pepper, proof }) => {
      if (data === undefined || pepper === undefined || proof === undefined)
        throw new Error("the values are gone");
      return { field, expiresAt, data, pepper, proof };
    },
  );
  await collectCredential(test.ctx, given.user, id);
  return { id, root, held };
}

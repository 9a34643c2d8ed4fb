import { join } from "node:path";
import type { Address } from "@svc/protocol";
import {
  accountJobs,
  accountRoutes,
  type ApiKeys,
  isAcquainted,
  openApiKeys,
  openClients,
  readSigningKeys,
} from "./accounts/index.ts";
import {
  type ChainContext,
  chainJobs,
  chainRoutes,
  openChain,
  verifySignature,
} from "./chain/index.ts";
import {
  credentialFinalHandlers,
  credentialJobs,
  credentialRoutes,
  type Credentials,
  type CredentialsCallbacks,
  credentialWalletRoutes,
  openCredentials,
} from "./credentials/index.ts";
import {
  announceInvalidated,
  kycJobs,
  openOrderMetrics,
  type KycContext,
  kycRoutes,
  kycWalletRoutes,
  listHandedOver,
  settlementFinalHandlers,
} from "./kyc/index.ts";
import {
  createLoginDirectory,
  findBusiness,
  holdCompany,
  type KybContext,
  kybFinalHandlers,
  kybJobs,
  kybRoutes,
  kybWalletRoutes,
  noteCompanyRecord,
  openKyb,
} from "./kyb/index.ts";
import {
  addBrowserRoutes,
  businessLoginRules,
  endBusinessLogins,
  renewBusinessDomain,
  endLogin,
  limitContractSignatures,
  listLogins,
  type LoginContext,
  loginJobs,
  loginWalletRoutes,
  openLogin,
  tokenRoutes,
  signRequestObject,
} from "./login/index.ts";
import {
  auditRetentionSeconds,
  chainAudit,
  createAudit,
  noteRestore,
  purgeAudit,
} from "./platform/audit/audit.ts";
import { openAuditMetrics } from "./platform/audit/audit-metrics.ts";
import { noteBaseUrl } from "./platform/base-url.ts";
import {
  isClockMoved,
  isClockRight,
  openClock,
  type SharedClock,
  watchClock,
} from "./platform/clock.ts";
import { type Config, ConfigError, parseConfig } from "./platform/config/config.ts";
import type { Ctx } from "./platform/context.ts";
import { type Db, openDb } from "./platform/database/db.ts";
import { readOrMakeDevelopmentKey } from "./platform/config/development-key.ts";
import { makeDataDirectory } from "./platform/process/data-directory.ts";
import { drain } from "./platform/process/drain.ts";
import {
  hasEmbeddedPostgres,
  isRoutine,
  shareEmbeddedPostgres,
  startEmbeddedPostgres,
} from "./platform/embedded-postgres/embedded-postgres.ts";
import { addHealthRoutes } from "./platform/http/health.ts";
import type { Http } from "./platform/http/http.ts";
import { openInstallationKeys } from "./platform/cryptography/installation-keys.ts";
import { type Job, startJobs } from "./platform/jobs.ts";
import { listen } from "./platform/http/listener.ts";
import type { WalletCaller } from "./platform/http/wallet-caller.ts";
import { createLog } from "./platform/telemetry/log.ts";
import { createNewsFilter } from "./platform/telemetry/repetition.ts";
import {
  createMetrics,
  type Metrics,
  type MetricsServer,
  serveMetrics,
} from "./platform/telemetry/metrics.ts";
import { migrate, refusePending } from "./platform/database/migrate.ts";
import {
  noNotifications,
  type NotificationOptions,
  openNotifications,
} from "./platform/database/notifications.ts";
import { refuseSharedSessions } from "./platform/database/requirements.ts";
import { watchServer } from "./platform/database/same-server.ts";
import { addressPolicyOf } from "./platform/outbound/address-policy.ts";
import { createOutbound, type Outbound } from "./platform/outbound/outbound.ts";
import { resolveTxt } from "./platform/outbound/resolver.ts";
import { createRandom } from "./platform/cryptography/random.ts";
import { createRateLimiter, purgeRateBuckets, turnBackRateBuckets } from "./platform/rate-limit.ts";
import { createSeal } from "./platform/cryptography/seal.ts";
import { getWalletUser, walletJobs, walletRoutes } from "./wallets/index.ts";
import { Sender, webhookJobs, type WebhooksContext } from "./webhooks/index.ts";

/** One running process of the service. */
export interface Service extends AsyncDisposable {
  /** Public address and issuer. */
  readonly baseUrl: string;
  readonly metricsUrl: string;
  readonly ctx: KycContext;
  /** Reads the shared clock now instead of at its next notification. */
  refreshClock(): Promise<void>;
  /** Drains: no new connections, streams end, what is under way gets `DRAIN_SECONDS`. */
  close(): Promise<void>;
}

export interface Database extends AsyncDisposable {
  readonly db: Db;
}

/** Whether a database exists, so that {@link openDatabase} need not make one. Reads only. */
export async function hasDatabase(config: Config): Promise<boolean> {
  return config.databaseUrl !== null || hasEmbeddedPostgres(embeddedDirectory(config));
}

function embeddedDirectory({ dataDirectory }: Config): string {
  return join(dataDirectory, "postgres");
}

/**
 * Connects to the configured database: an external server, the one embedded in a running service, or one that this
 * process embeds.
 *
 * @param options.mayShare false refuses a database that another running process embeds
 */
export async function openDatabase(
  config: Config,
  options: { mayShare: boolean } = { mayShare: true },
): Promise<Database> {
  const connections = config.databaseConnections;
  if (config.databaseUrl !== null) {
    const db = openDb({ connectionString: config.databaseUrl, connections });
    return { db, [Symbol.asyncDispose]: async () => db.close() };
  }
  makeDataDirectory(config.dataDirectory);
  const directory = embeddedDirectory(config);
  const log = createLog({ level: config.logLevel });
  const tell = (line: string): void =>
    isRoutine(line)
      ? log.debug({ line }, "the embedded database says")
      : log.warn({ line }, "the embedded database says");
  const open = options.mayShare ? shareEmbeddedPostgres : startEmbeddedPostgres;
  const server = await open({ directory, log: tell });
  const db = openDb({ ...server.connection, connections });
  return {
    db,
    async [Symbol.asyncDispose]() {
      await db.close();
      await server.close();
    },
  };
}

/** The context of one process, with what has to be closed after it. */
export type OpenContext = Ctx & AsyncDisposable & { readonly clock: SharedClock };

/**
 * Opens everything a verb needs: database (migrated), keys, clock, limits. If a part fails to open, those before it are
 * closed again.
 *
 * @param options.mayShare as of {@link openDatabase}
 * @param options.mayMigrate false refuses a database that is behind this version instead of migrating it, and one that
 * does not exist yet instead of making it
 * @param options.isBrief true for a verb, which ends so soon that it need not hear what other processes change
 * @throws {ConfigError} in `production` if the clock of the installation was moved
 */
export async function openContext(
  config: Config = parseConfig(),
  {
    mayShare = true,
    mayMigrate = true,
    isBrief = false,
  }: { mayShare?: boolean; mayMigrate?: boolean; isBrief?: boolean } = {},
): Promise<OpenContext> {
  if (!mayMigrate && !(await hasDatabase(config)))
    throw new Error(`there is no database in ${config.dataDirectory}; \`svc migrate\` comes first`);
  await using stack = new AsyncDisposableStack();
  const log = createLog({ level: config.logLevel });
  const { db } = stack.use(await openDatabase(config, { mayShare }));
  if (mayMigrate) await migrate(db);
  else await refusePending(db);
  await noteRestore(db);
  if (config.profile === "production" && (await isClockMoved(db)))
    throw new ConfigError("the clock of this installation was moved in the profile dev");
  const isNews = createNewsFilter();
  const onFault: NotificationOptions["onFault"] = (error) =>
    isNews(error) &&
    log.warn({ err: error }, "notifications between processes failed; polling goes on");
  const notifications = stack.use(
    isBrief ? noNotifications : await openNotifications(db, { onFault }),
  );
  const clock = stack.use(await openClock(db, notifications, { isBrief }));
  const random = createRandom();
  const seal = createSeal(config.masterKeys ?? [readOrMakeDevelopmentKey(config.dataDirectory)]);
  const keys = await openInstallationKeys({ db, seal, clock, random });
  const metrics = createMetrics();
  metrics.countDatabaseCalls(db);
  const outbound = countOutbound(metrics, createOutbound(addressPolicyOf(config)));
  stack.defer(async () => outbound.close());
  const ctx: Ctx = {
    config,
    db,
    clock,
    random,
    log,
    metrics,
    notifications,
    seal,
    keys,
    outbound,
    resolveTxt,
    limits: createRateLimiter({ db, clock }, { limitLoopback: config.limitLoopback }),
    audit: createAudit({ db, clock, keys }),
  };
  const opened = stack.move();
  return {
    ...ctx,
    clock,
    [Symbol.asyncDispose]: async () => opened.disposeAsync(),
  };
}

function countOutbound(metrics: Metrics, outbound: Outbound): Outbound {
  return {
    async send(request) {
      const result = await outbound.send(request);
      const outcome = result.kind === "answered" ? "answered" : result.reason;
      metrics.outboundRequests.inc({ outcome });
      return result;
    },
    close: async () => outbound.close(),
  };
}

/** The contexts of the slices. */
interface Slices {
  readonly chain: ChainContext;
  readonly apiKeys: ApiKeys;
  readonly login: LoginContext;
  readonly credentials: Credentials;
  readonly kyc: KycContext;
  readonly kyb: KybContext;
}

async function openSlices(stack: AsyncDisposableStack, base: Ctx): Promise<Slices> {
  const openingChain = openBeside(stack, openChain(base, { mayBeAway: true }));
  const clients = stack.use(await openClients(base));
  const apiKeys = stack.use(await openApiKeys(base));
  const login = await openLogin({
    ...base,
    clients,
    businesses: createLoginDirectory(() => kyb),
    verifySignature: async ({ loginId, callerAddress, ...claim }) =>
      verifySignature({ ...base, chain: await openingChain }, claim, async () =>
        mayContractSign(base, {
          subject: `login:${loginId}`,
          callerAddress,
          address: claim.address,
        }),
      ),
  });
  stack.use(login.signingKeys);
  const chain: ChainContext = { ...base, chain: await openingChain };
  const credentials = stack.use(
    await openCredentials(
      { ...chain, apiKeys },
      callbacksOf(base, login, () => kyc),
    ),
  );
  const kyc: KycContext = {
    ...credentials,
    signRequestObject: (claims) => signRequestObject(login, claims),
    mayContractSign: async (asked) => mayContractSign(base, asked),
  };
  const kyb: KybContext = openKyb(credentials, {
    signRequestObject: (claims) => signRequestObject(login, claims),
    endBusinessLogins: async (tx, business) => endBusinessLogins(login, tx, business),
    businessLogins: businessLoginRules(login),
  });
  return { chain, apiKeys, login, credentials, kyc, kyb };
}

/**
 * Whether an account that is a contract may sign: not if it is a business, which acts by its members (decisions section
 * 3, Signatures).
 *
 * @throws {Problem} rate_limited
 */
async function mayContractSign(
  ctx: Ctx,
  { address, ...asked }: { subject?: string; callerAddress: string; address: Address },
): Promise<boolean> {
  await limitContractSignatures(ctx, asked);
  return (await findBusiness(ctx.db, address)) === null;
}

async function addRoutes(base: Ctx, slices: Slices, http: Http): Promise<void> {
  const { chain, apiKeys, login, credentials, kyc, kyb } = slices;
  const caller: WalletCaller = async (authorization) => getWalletUser(base, authorization);
  addHealthRoutes(base, http);
  await accountRoutes({ ...base, apiKeys }, http);
  await addBrowserRoutes(login, http);
  await tokenRoutes(login, http);
  await credentialRoutes(credentials, http);
  await kycRoutes(kyc, http);
  await kybRoutes(kyb, http);
  await walletRoutes(base, http, {
    verifySession: async ({ callerAddress, ...claim }) =>
      verifySignature(chain, claim, async () =>
        mayContractSign(base, { callerAddress, address: claim.address }),
      ),
    listLogins: async (user, page) => listLogins(login, user, page),
    endLogin: async (user, id) => endLogin(login, user, id),
    addRoutes: (scope) => {
      loginWalletRoutes(login, scope);
      chainRoutes(chain, scope);
      credentialWalletRoutes(credentials, scope, caller);
      kycWalletRoutes(kyc, scope, caller);
      kybWalletRoutes(kyb, scope, caller);
    },
  });
}

/** Starts one process: HTTP, metrics and jobs over one database and one chain. */
export async function compose(config: Config): Promise<Service> {
  await using stack = new AsyncDisposableStack();
  const base = stack.use(await openContext(config, { mayShare: false }));
  await refuseSharedSessions(base.db);
  await noteBaseUrl(base);
  const slices = await openSlices(stack, base);
  const { login, credentials, kyc, kyb } = slices;
  // Imported here, because the operator's verbs need no HTTP server: loading it would take a sixth of their time.
  const { createHttp } = await import("./platform/http/http.ts");
  const http = createHttp(base);
  await addRoutes(base, slices, http);
  openAuditMetrics(base);
  openOrderMetrics(kyc);
  const exposed = stack.use(await exposeMetrics(base));
  const webhooks = openWebhooks(base);
  const jobs = [
    ...loginJobs(login),
    ...platformJobs(base),
    ...accountJobs(base),
    ...walletJobs(base),
    ...credentialJobs(credentials),
    ...kycJobs(kyc),
    ...kybJobs(kyb),
    ...webhooks.jobs,
    ...chainJobs(slices.chain, {
      ...credentialFinalHandlers(base),
      ...settlementFinalHandlers(kyc),
      ...kybFinalHandlers(kyb),
    }),
  ];
  const mayRun = watchOwnClock(base);
  // Measures the clock before listening, so that rate limits count even the first calls by the database's clock.
  await mayRun();
  const listener = await listen(http, config);
  const following = { ...base, sharedClock: base.clock, mayRun };
  const works = [startJobs(following, jobs), webhooks];
  stack.defer(async () => drain(base, { listener, works }));
  const opened = stack.move();
  const close = async (): Promise<void> => opened.disposeAsync();
  return {
    baseUrl: config.baseUrl,
    metricsUrl: exposed.url,
    ctx: kyc,
    refreshClock: async () => base.clock.refresh(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function exposeMetrics({ config, metrics }: Ctx): Promise<MetricsServer> {
  return serveMetrics(metrics, { host: config.metricsHost, port: config.metricsPort });
}

/**
 * Returns whether jobs may run. They compare deadlines that other processes set, so they wait while this machine's
 * clock is wrong.
 */
function watchOwnClock({ db, clock, log }: Ctx): () => Promise<boolean> {
  return watchClock(
    async () => isClockRight(db, clock),
    (isRight) => {
      if (isRight) log.warn("jobs go on: this machine's clock is right again");
      else
        log.error("jobs wait: this machine's clock differs from the database's by more than 2 s");
    },
  );
}

/** The sender of this process with its jobs; closing waits for deliveries under way. */
function openWebhooks(base: Ctx): { jobs: Job[] } & AsyncDisposable {
  const ctx: WebhooksContext = {
    ...base,
    signingKeys: async (packageIds) => readSigningKeys(base, packageIds),
  };
  const sender = new Sender(ctx);
  return {
    jobs: webhookJobs(ctx, sender),
    [Symbol.asyncDispose]: async () => sender[Symbol.asyncDispose](),
  };
}

/** The functions of other slices that credentials calls. @param kyc is opened after credentials */
function callbacksOf(ctx: Ctx, login: LoginContext, kyc: () => KycContext): CredentialsCallbacks {
  return {
    mayAsk: async (organizationId, user) =>
      ctx.config.profile === "dev" || (await isAcquainted(ctx.db, organizationId, user)),
    listHandedOver: async (organizationId, given) => listHandedOver(ctx.db, organizationId, given),
    onInvalidated: async (tx, leaves) => announceInvalidated(kyc(), tx, leaves),
    holdCompany,
    onCompanyRecord: async (tx, company) => noteCompanyRecord(ctx, tx, company),
    onCompanyRecordOver: async (tx, { business }) => renewBusinessDomain(login, tx, business),
  };
}

/**
 * Registers a part that is still being opened, so that it is closed with the rest even if another part fails to open.
 */
function openBeside<T extends AsyncDisposable>(
  stack: AsyncDisposableStack,
  opening: Promise<T>,
): Promise<T> {
  const settled = opening.catch(() => null);
  stack.defer(async () => (await settled)?.[Symbol.asyncDispose]());
  return opening;
}

const twoServers =
  "connections lead to two database servers: end those to the former primary, and keep it from writing";

function platformJobs(ctx: OpenContext): Job[] {
  return [
    // Only `dev` can move the time. A notification announces a move at once; this job is for one that is lost.
    ...(ctx.config.profile === "dev"
      ? [{ name: "clock", everySeconds: 5, run: async () => ctx.clock.refresh() }]
      : []),
    {
      name: "database-server",
      everySeconds: 5,
      run: watchServer(ctx.db, () => ctx.log.error(twoServers)),
    },
    { name: "audit-chain", everySeconds: 0.5, run: async () => void (await chainAudit(ctx)) },
    {
      name: "audit-retention",
      everySeconds: 3600,
      run: async () =>
        void (await purgeAudit(ctx, { before: ctx.clock.now() - auditRetentionSeconds })),
    },
    {
      name: "rate-buckets",
      everySeconds: 3600,
      run: async () => void (await purgeRateBuckets(ctx)),
    },
    {
      name: "rate-buckets-ahead",
      everySeconds: 60,
      run: async () => turnBackRateBuckets(ctx),
    },
  ];
}

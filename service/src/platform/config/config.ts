import { join } from "node:path";
import {
  chainSettings,
  faultOfChainInProduction,
  faultOfSigner,
  type OptionalChainSetting,
} from "./chain-settings.ts";
import { isDevelopmentKey } from "./development-key.ts";
import { faultOfMail, mailSettings, type OptionalMailSetting } from "./mail-settings.ts";
import {
  flag,
  httpUrl,
  masterKeys,
  networks,
  oneOf,
  postgresUrl,
  type Setting,
  setting,
  text,
  whole,
} from "./setting.ts";

const portMax = 65_535;
const metricsPortOffset = 9;
/** The longest life that an access token can be given. */
export const accessTokenSecondsMax = 86_400;

/** Every setting of the service. The reference page is generated from this table. */
export const settings = {
  profile: setting({
    env: "PROFILE",
    unit: "dev | production",
    fallback: "dev",
    parse: oneOf("dev", "production"),
    description:
      "`production` refuses development keys, embedded parts that are not allowed by their settings, insecure addresses, and moving the clock.",
  }),
  port: setting({
    env: "PORT",
    unit: "TCP port",
    fallback: "4000",
    // Not 0, because the issuer contains the port, and so does everything that was registered with it.
    parse: whole(1, portMax),
    description:
      "Port of the service. At most 65526 unless `METRICS_PORT` is set. The demo's shop listens on the next port.",
  }),
  host: setting({
    env: "HOST",
    unit: "address",
    fallback: "localhost",
    parse: text,
    description:
      "Address the service binds to. `localhost` means every address that the system has for it: 127.0.0.1 and, if available, ::1.",
  }),
  baseUrl: setting({
    env: "BASE_URL",
    unit: "origin",
    fallback: null,
    parse: httpUrl,
    description:
      "Public origin of the service, and issuer of its tokens. Default: `http://localhost:<PORT>`.",
  }),
  dataDirectory: setting({
    env: "DATA_DIR",
    unit: "path",
    fallback: null,
    parse: text,
    description:
      "Directory where the embedded parts keep their state. Default: `.data`, or `/var/lib/svc` as root.",
  }),
  databaseUrl: setting({
    env: "DATABASE_URL",
    unit: "URL",
    fallback: null,
    parse: postgresUrl,
    description:
      "PostgreSQL database, version 15 or newer. Unset: the embedded PostgreSQL under `DATA_DIR`.",
    secret: true,
  }),
  databaseConnections: setting({
    env: "DATABASE_CONNECTIONS",
    unit: "connections",
    fallback: "10",
    parse: whole(2, 200),
    description: "Size of the connection pool of each process.",
  }),
  ...chainSettings,
  ...mailSettings,
  masterKeys: setting({
    env: "MASTER_KEY",
    unit: "hex",
    fallback: null,
    parse: masterKeys,
    description:
      "Keys under which everything sealed in the database is encrypted, newest first. Keep an old key listed until `svc key rewrap` has run. Unset in `dev`: made at the first start and kept in `DATA_DIR`.",
    secret: true,
  }),
  metricsPort: setting({
    env: "METRICS_PORT",
    unit: "TCP port",
    fallback: null,
    parse: whole(0, portMax),
    description: "Port of the Prometheus metrics. Default: `PORT` + 9; 0 picks a free port.",
  }),
  metricsHost: setting({
    env: "METRICS_HOST",
    unit: "address",
    fallback: "localhost",
    parse: text,
    description:
      "Address the metrics bind to. `localhost` means the first address that the system has for it, so they are on loopback by default.",
  }),
  walletOrigin: setting({
    env: "WALLET_ORIGIN",
    unit: "origin",
    fallback: null,
    parse: httpUrl,
    description:
      "Origin of the web wallet. It may call `/w/*` from a browser, and universal links and pick-up links lead to it. Default: `BASE_URL` with its port + 2; set it in `production`.",
  }),
  trustedProxies: setting({
    env: "TRUSTED_PROXIES",
    unit: "CIDR list",
    fallback: "",
    parse: networks,
    description:
      "Proxies whose `X-Forwarded-For` is trusted. Empty: the address of the connection is taken as the client's.",
  }),
  embeddedDatabaseAllowed: setting({
    env: "ALLOW_EMBEDDED_DATABASE",
    unit: "true | false",
    fallback: "false",
    parse: flag,
    description: "Lets `production` run on the embedded PostgreSQL.",
  }),
  logLevel: setting({
    env: "LOG_LEVEL",
    unit: "level",
    fallback: "info",
    parse: oneOf("fatal", "error", "warn", "info", "debug", "silent"),
    description: "Lowest level of log lines to write. They go to standard output as JSON.",
  }),
  loginLifetimeSeconds: setting({
    env: "LOGIN_LIFETIME_SECONDS",
    unit: "seconds",
    fallback: "120",
    parse: whole(30, 900),
    description: "How long a QR page waits for its wallet.",
  }),
  codeLifetimeSeconds: setting({
    env: "CODE_LIFETIME_SECONDS",
    unit: "seconds",
    fallback: "60",
    parse: whole(5, 600),
    description: "Lifetime of an authorization code.",
  }),
  accessTokenLifetimeSeconds: setting({
    env: "ACCESS_TOKEN_LIFETIME_SECONDS",
    unit: "seconds",
    fallback: "3600",
    parse: whole(60, accessTokenSecondsMax),
    description: "Lifetime of access tokens and id tokens.",
  }),
  refreshGraceSeconds: setting({
    env: "REFRESH_GRACE_SECONDS",
    unit: "seconds",
    fallback: "10",
    parse: whole(0, 60),
    description:
      "How long a repeated refresh returns the same new token instead of revoking the family.",
  }),
  refreshIdleSeconds: setting({
    env: "REFRESH_IDLE_SECONDS",
    unit: "seconds",
    fallback: "2592000",
    parse: whole(60, 31_536_000),
    description: "Lifetime of a refresh token that is not used.",
  }),
  refreshAbsoluteSeconds: setting({
    env: "REFRESH_ABSOLUTE_SECONDS",
    unit: "seconds",
    fallback: "31536000",
    parse: whole(60, 63_072_000),
    description:
      "Lifetime of a family of refresh tokens, however often it is used. At most 30 days for a login for a business.",
  }),
  sessionIdleSeconds: setting({
    env: "SESSION_IDLE_SECONDS",
    unit: "seconds",
    fallback: "43200",
    parse: whole(60, 604_800),
    description: "Lifetime of a browser session that is not used.",
  }),
  sessionAbsoluteSeconds: setting({
    env: "SESSION_ABSOLUTE_SECONDS",
    unit: "seconds",
    fallback: "604800",
    parse: whole(60, 2_592_000),
    description: "Lifetime of a browser session, however often it is used.",
  }),
  keyLifetimeSeconds: setting({
    env: "KEY_LIFETIME_SECONDS",
    unit: "seconds",
    fallback: "7776000",
    parse: whole(3600, 31_536_000),
    description:
      "How long a key signs tokens, request objects or attestations before the next one takes over.",
  }),
  readsPerSecond: setting({
    env: "LIMIT_READS_PER_SECOND",
    unit: "requests/s",
    fallback: "100",
    parse: whole(1, 100_000),
    description: "Reads per API key or issuer key. Bursts may be four times as large.",
  }),
  createsPerSecond: setting({
    env: "LIMIT_CREATES_PER_SECOND",
    unit: "requests/s",
    fallback: "25",
    parse: whole(1, 100_000),
    description:
      "Calls other than reads per API key or issuer key. Bursts may be four times as large.",
  }),
  loginsPerAddressMinute: setting({
    env: "LIMIT_LOGINS_PER_ADDRESS_MINUTE",
    unit: "requests/min",
    fallback: "300",
    parse: whole(1, 1_000_000),
    description:
      "Logins started per client address (IPv6: per /64). The same limit applies separately to each kind of wallet call: opening sessions, answering orders, leaving and picking up boxes, registering devices, and relaying answers.",
  }),
  loginsPerClientMinute: setting({
    env: "LIMIT_LOGINS_PER_CLIENT_MINUTE",
    unit: "requests/min",
    fallback: "3000",
    parse: whole(1, 1_000_000),
    description:
      "Logins started per OAuth client. The same limit applies separately to the requests that the client pushes.",
  }),
  limitLoopback: setting({
    env: "LIMIT_LOOPBACK",
    unit: "true | false",
    fallback: null,
    parse: flag,
    description:
      "Whether limits apply to callers on loopback. The limits on requests to a business, on codes sent by e-mail and on calls to contracts always do, and so do an organization's own limits. Default: `false` in `dev`, else `true`.",
  }),
  drainSeconds: setting({
    env: "DRAIN_SECONDS",
    unit: "seconds",
    fallback: "15",
    parse: whole(0, 300),
    description: "How long a stopping process waits for work under way.",
  }),
} as const;

type Parsed = { [K in keyof typeof settings]: ReturnType<(typeof settings)[K]["parse"]> };
type Derived =
  | "baseUrl"
  | "confirmations"
  | "dataDirectory"
  | "metricsPort"
  | "walletOrigin"
  | "limitLoopback";
type Optional = OptionalChainSetting | OptionalMailSetting | "databaseUrl" | "masterKeys";

/** `dev` also reaches what runs on this machine; `production` refuses what is made for a developer. */
export type Profile = Config["profile"];

/** The configuration of one process: parsed once, frozen, every member documented in {@link settings}. */
export type Config = Readonly<Omit<Parsed, Optional> & { [K in Optional]: Parsed[K] | null }>;

/**
 * A setting in the environment has a value that cannot be used; the message names the setting and says what it must be.
 */
export class ConfigError extends Error {}

function read<T>(environment: NodeJS.ProcessEnv, each: Setting<T>): T | null {
  const given = environment[each.env];
  const source = given === undefined || given === "" ? each.fallback : given;
  if (source === null) return null;
  try {
    return each.parse(source);
  } catch (error) {
    throw new ConfigError(`${each.env} ${error instanceof Error ? error.message : "is wrong"}`);
  }
}

function derived(
  given: Omit<Parsed, Derived> & { [K in Derived]: Parsed[K] | null },
): Pick<Parsed, Derived> {
  const baseUrl = given.baseUrl ?? `http://localhost:${given.port}`;
  const wallet = new URL(baseUrl);
  const portByProtocol = wallet.protocol === "https:" ? 443 : 80;
  wallet.port = String((wallet.port === "" ? portByProtocol : Number(wallet.port)) + 2);
  return {
    baseUrl,
    confirmations: given.confirmations ?? (given.chainRpcUrl === null ? 1 : 12),
    dataDirectory:
      given.dataDirectory ??
      (process.getuid?.() === 0 ? "/var/lib/svc" : join(process.cwd(), ".data")),
    metricsPort: given.metricsPort ?? given.port + metricsPortOffset,
    walletOrigin: given.walletOrigin ?? wallet.origin,
    limitLoopback: given.limitLoopback ?? given.profile !== "dev",
  };
}

/** The fault of settings that are right one by one; null if there is none. */
function faultOf(config: Config): string | null {
  return (
    faultOfSigner(config) ??
    faultOfMail(config) ??
    faultOfMetricsPort(config) ??
    (config.profile === "dev" ? faultInDevelopment(config) : faultInProduction(config))
  );
}

function faultOfMetricsPort({ port, metricsPort }: Config): string | null {
  if (metricsPort > portMax)
    return `PORT must be at most ${portMax - metricsPortOffset}, unless METRICS_PORT is set`;
  return metricsPort === port ? "METRICS_PORT must differ from PORT" : null;
}

function faultInDevelopment({ baseUrl }: Config): string | null {
  return isOfDevelopment(baseUrl)
    ? null
    : "BASE_URL must be on localhost in the profile dev; for another host set PROFILE=production";
}

/** Whether the profile `dev` serves such a `BASE_URL`. */
export function isOfDevelopment(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === "localhost" || hostname === "127.0.0.1";
}

function faultInProduction(config: Config): string | null {
  if (new URL(config.baseUrl).protocol !== "https:")
    return "BASE_URL must be https in the profile production";
  // The web wallet's page holds people's keys, and its scripts may call `/w/*`.
  if (new URL(config.walletOrigin).protocol !== "https:")
    return "WALLET_ORIGIN must be https in the profile production";
  if (config.masterKeys === null) return "MASTER_KEY must be set in the profile production";
  if (config.masterKeys.some((key) => /^0+$/.test(key)))
    return "MASTER_KEY must be random in the profile production, such as one from `openssl rand -hex 32`";
  if (isDevelopmentKey(config.dataDirectory, config.masterKeys))
    return "MASTER_KEY must not be the development key of DATA_DIR in the profile production; first change to another key with `svc key rewrap`";
  if (config.databaseUrl === null && !config.embeddedDatabaseAllowed)
    return "DATABASE_URL must be set in the profile production (or ALLOW_EMBEDDED_DATABASE=true)";
  return faultOfChainInProduction(config);
}

/**
 * Parses and checks the whole configuration at once.
 *
 * @param overrides wins over the environment, by variable name; used by tests and the demo
 * @throws {ConfigError} naming the variable and what it must be
 */
export function parseConfig(overrides: NodeJS.ProcessEnv = {}): Config {
  const environment = { ...process.env, ...overrides };
  const entries = Object.entries(settings).map(([name, each]) => [
    name,
    read<unknown>(environment, each),
  ]);
  const given = Object.fromEntries(entries) as Parameters<typeof derived>[0];
  const config: Config = Object.freeze({ ...given, ...derived(given) });
  const fault = faultOf(config);
  if (fault !== null) throw new ConfigError(fault);
  return config;
}

import type { Audit } from "./audit/audit.ts";
import type { Clock } from "./clock.ts";
import type { Config } from "./config/config.ts";
import type { Db } from "./database/db.ts";
import type { InstallationKeys } from "./cryptography/installation-keys.ts";
import type { Log } from "./telemetry/log.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { Notifications } from "./database/notifications.ts";
import type { Outbound } from "./outbound/outbound.ts";
import type { resolveTxt } from "./outbound/resolver.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { Seal } from "./cryptography/seal.ts";

/** The context of every verb: built once per process in `compose.ts`, first parameter everywhere. */
export interface Ctx {
  readonly config: Config;
  readonly db: Db;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly notifications: Notifications;
  readonly seal: Seal;
  /** HMAC keys of this installation, by purpose. */
  readonly keys: InstallationKeys;
  readonly outbound: Outbound;
  readonly resolveTxt: typeof resolveTxt;
  readonly limits: RateLimiter;
  readonly audit: Audit;
}

/** Source of randomness; replaced only by tests that need a particular value. */
export interface Random {
  bytes(length: number): Buffer;
  /** Uniform in [0, bound). */
  below(bound: number): number;
  /** 0..1, for jitter only. */
  fraction(): number;
}

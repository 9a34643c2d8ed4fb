import { flushCompileCache } from "node:module";
import { parseAddress } from "@svc/protocol";
import { NodeAway, openChain } from "../chain/index.ts";
import { compose, hasDatabase, openDatabase } from "../compose.ts";
import { type AnchorReport, hasAnchors, verifyAnchors } from "../kyc/index.ts";
import { listEntries } from "../platform/audit/audit.ts";
import { readBaseUrl } from "../platform/base-url-store.ts";
import { advanceClock } from "../platform/clock.ts";
import { type Config, isOfDevelopment, settings } from "../platform/config/config.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { listMigrations, listPending, migrate } from "../platform/database/migrate.ts";
import { parseUuid } from "../platform/ids.ts";
import { watchStopSignal } from "../platform/process/stop-signal.ts";
import { tellUnhandledFault } from "../platform/process/unhandled-fault.ts";
import { exampleIds } from "./example-ids.ts";
import { actor, BadNews, dryRun, UsageError, type Verb, wholeNumber } from "./verb.ts";

const changedTrail = "the audit trail was changed";

export const installationVerbs: readonly Verb[] = [
  {
    name: "serve",
    summary: "Run the service until SIGTERM or SIGINT, then finish open work and exit.",
    notes:
      "The line `ready <base url>` means that the service accepts requests. Log lines are JSON.",
    hasNoResult: true,
    example: "serve",
    run: async (shell) => {
      const started = watchStopSignal(shell.config);
      tellUnhandledFault(shell.config);
      await using service = await compose(shell.config);
      const stopped = started();
      // Node writes the cache when the process ends, but not if it is killed: then the next start would take twice as
      // long.
      flushCompileCache();
      shell.say(`ready ${service.baseUrl}`);
      await stopped;
    },
  },
  {
    name: "migrate",
    summary: "Migrate the database to the schema of this version of the code.",
    notes:
      "`serve` does this when it starts. Several processes may do it at once: they take turns.",
    options: { "dry-run": dryRun },
    example: "migrate --dry-run",
    run: async (shell, input) => {
      const isDryRun = input.flag("dry-run");
      // A dry run must not create the embedded database.
      if (isDryRun && !(await hasDatabase(shell.config)))
        return { pending: listMigrations().map((each) => each.name) };
      await using database = await openDatabase(shell.config);
      if (isDryRun) return { pending: await listPending(database.db) };
      return { applied: await migrate(database.db) };
    },
  },
  {
    name: "settings",
    summary: "List every setting with its value; secrets are masked.",
    example: "settings",
    run: async (shell) => listSettings(shell.config),
  },
  {
    name: "audit list",
    summary: "List entries of the audit trail, newest first, at most 100 at a time.",
    options: {
      about: {
        value: "id",
        description:
          "Only entries with this actor or subject: an address, a UUID, the id of a client or key, `api-key:<id>`, `issuer:<id>`, `cli` or `system`.",
      },
      before: {
        value: "number",
        description:
          "Only entries before this one; to get the next page, pass the `nextCursor` of the current one.",
      },
    },
    example: `audit list --about ${exampleIds.client}`,
    run: async (shell, input) => {
      const [about, before] = [input.optional("about"), input.optional("before")];
      const of = {
        about: about === undefined ? undefined : spelledAsStored(about),
        before: before === undefined ? undefined : wholeNumber("--before", before),
      };
      return shell.withContext(async (ctx) => listEntries(ctx.db, of));
    },
  },
  {
    name: "audit verify",
    summary: "Check that the audit trail is intact.",
    notes:
      "Recomputes the hash chain over the trail, reports edits, deletions and entries that are not sealed yet, and compares the trail with the heads of kept entries that settlements anchored on chain; with `CHAIN=off` it skips that comparison. The status is 1 if something is wrong, or if the chain's node does not answer; the result for the trail itself is printed either way.",
    example: "audit verify",
    run: async (shell) =>
      shell.withContext(async (ctx) => {
        const trail = await ctx.audit.verify((total) =>
          shell.progress(`${total} entries are checked`),
        );
        const anchored = await compareAnchors(ctx).catch((error: unknown) => {
          if (!(error instanceof NodeAway)) throw error;
          const found = trail.isIntact ? "nothing was compared with the chain" : changedTrail;
          throw new BadNews(`${found}: ${error.message}`, { ...trail, anchored: null });
        });
        const isIntact = trail.isIntact && anchored.isIntact;
        const report = { ...trail, isIntact, anchored };
        if (!report.isIntact) throw new BadNews(changedTrail, report);
        return report;
      }),
  },
  {
    name: "clock advance",
    summary: "Move the time of the whole installation forward; only in the profile dev.",
    notes:
      "Every process follows within a second and then runs what has become due, including deletions at the end of a retention period. This cannot be undone.",
    parameters: [
      {
        name: "seconds",
        description: "How many seconds to move, from 1 to 999999999 (31 years).",
      },
    ],
    example: "clock advance 86400",
    run: async (shell, input) => {
      const seconds = wholeNumber("seconds", input.text("seconds"));
      if (seconds < 1) throw new UsageError("seconds must be at least 1");
      refuseClock(shell.config);
      return shell.withContext(async (ctx) => {
        await refuseProduction(ctx.db);
        const offsetSeconds = await ctx.db.transaction(async (tx) => {
          // Makes all jobs due too: an hourly job would otherwise notice only later that, for example, a deletion is
          // due.
          const moved = await advanceClock(tx, seconds, { everyJob: true });
          const details = { seconds, offsetSeconds: moved };
          const entry = { actor, action: "clock.advance", subject: "installation", details };
          await ctx.audit.record(tx, entry);
          return moved;
        });
        return { now: Math.floor(Date.now() / 1000) + offsetSeconds, offsetSeconds };
      });
    },
  },
];

/** Normalises an address or a UUID, which may have been copied in any case; leaves anything else as it is. */
function spelledAsStored(id: string): string {
  return parseAddress(id) ?? parseUuid(id) ?? id;
}

/** Opens the chain only if something was anchored: opening it for the first time deploys the contracts. */
async function compareAnchors(ctx: Ctx): Promise<AnchorReport> {
  if (ctx.config.chain === "off" || !(await hasAnchors(ctx)))
    return { isIntact: true, checked: 0, faults: [] };
  await using chain = await openChain(ctx);
  return await verifyAnchors({ ...ctx, chain });
}

/** A movable clock would make every deadline in production meaningless, and an external chain does not follow it. */
function refuseClock(config: Config): void {
  if (config.profile !== "dev") throw new Error("the clock can be moved in the profile dev only");
  if (config.chainRpcUrl !== null)
    throw new Error("the clock cannot be moved with CHAIN_RPC_URL: that chain has its own time");
}

/**
 * On a machine of production the settings may be missing in a shell, and `dev` is what they default to. Production does
 * not start on a moved clock, and no clock can be moved back.
 */
async function refuseProduction(db: Queryable): Promise<void> {
  const served = await readBaseUrl(db);
  if (served !== null && !isOfDevelopment(served))
    throw new Error(
      `the clock can be moved in the profile dev only, and this database was served as ${served}`,
    );
}

function listSettings(config: Config): Record<string, unknown>[] {
  const names = Object.keys(settings) as (keyof typeof settings)[];
  return names.map((name) => {
    const { env, unit } = settings[name];
    const isSecret = "secret" in settings[name];
    const value = config[name];
    return { setting: env, value: isSecret && value !== null ? "********" : value, unit };
  });
}

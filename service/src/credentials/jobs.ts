import { alarmWhileAway } from "../chain/index.ts";
import type { Job, NextWake } from "../platform/jobs.ts";
import { sendToRegistry } from "./batches.ts";
import { endCompanyRecords, purgeCompanyValues } from "./company-ending.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { purgeVerifications, sendMessages } from "./email.ts";
import { announceDistrusted, purgeCredentials } from "./ending.ts";
import { issuerChannel } from "./issuer-store.ts";
import { purgeLookups } from "./lookups.ts";

/** The jobs of this slice. */
export function credentialJobs(ctx: CredentialsContext): Job[] {
  const { mailer } = ctx;
  const registry: Job = {
    name: "credential-registry",
    // Also the window of a batch: roots that arrive within a second share a transaction.
    everySeconds: 1,
    run: async () => alarmWhileAway(ctx, async () => sendToRegistry(ctx)),
  };
  return [
    ...(ctx.config.chain === "off" ? [] : [registry]),
    {
      name: "credential-distrust",
      everySeconds: 5,
      wakeOn: issuerChannel,
      run: async () => announceDistrusted(ctx),
    },
    {
      name: "credential-retention",
      everySeconds: 3600,
      run: async () => purgeCredentials(ctx),
    },
    {
      name: "company-ending",
      everySeconds: 5,
      wakeOn: issuerChannel,
      run: async () => endCompanyRecords(ctx),
    },
    {
      name: "company-retention",
      everySeconds: 3600,
      run: async () => purgeCompanyValues(ctx),
    },
    {
      name: "lookup-retention",
      everySeconds: 3600,
      run: async () => purgeLookups(ctx),
    },
    {
      name: "email-retention",
      everySeconds: 600,
      run: async () => purgeVerifications(ctx),
    },
    ...(mailer === null
      ? []
      : [
          {
            name: "email-messages",
            everySeconds: 5,
            wakeOn: "email",
            run: async (closing: AbortSignal, nextWake?: NextWake) =>
              sendMessages(ctx, mailer, { closing, nextWake }),
          },
        ]),
  ];
}

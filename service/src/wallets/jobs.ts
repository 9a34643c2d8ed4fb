import type { Ctx } from "../platform/context.ts";
import type { Job } from "../platform/jobs.ts";
import { purgeMailbox } from "./mailbox.ts";
import { purgeDevices, purgeHints, sendHints } from "./push.ts";
import { purgeWalletSessions } from "./wallet-sessions.ts";

/** The jobs of this slice; every process runs them. */
export function walletJobs(ctx: Ctx): readonly Job[] {
  return [
    { name: "wallet-sessions", everySeconds: 600, run: async () => purgeWalletSessions(ctx) },
    { name: "mailbox", everySeconds: 60, run: async () => purgeMailbox(ctx) },
    { name: "push", everySeconds: 2, run: async (closing) => sendHints(ctx, closing) },
    { name: "push-retention", everySeconds: 3600, run: async () => purgeHints(ctx) },
    { name: "push-devices", everySeconds: 3600, run: async () => purgeDevices(ctx) },
  ];
}

import type { Result } from "./login.ts";
import { machineText, markdownTable } from "./performance-page.ts";
import { kybColumnNames } from "./row.ts";

/** The reference page of KYB: command, table, machine, and how each figure came about. */
export function kybPage({ rows, postgresVersion }: Result): string {
  return `# Performance of KYB

Written by \`npm run bench -- kyb --write\`; run it to get the figures of your machine.

${markdownTable(rows, kybColumnNames)}

Machine: ${machineText(postgresVersion)}.

## How it is measured

- Gas is what transactions on the embedded chain's node cost, each in a block of its own. Safe 1.5.0 is deployed there from
  its npm package \`@safe-global/safe-smart-account\`. *isValidSignature* is gas beyond the base cost of a call.
- Each kind of gas has two rows: against its bound, where the ratio is that of Safe divided by ours, and as a share of
  Safe's.
- The service runs as one process over the embedded PostgreSQL with its durable settings, ten connections, and the embedded
  chain. \`ms\` are milliseconds on a CPU, user and system, all threads, as the kernel accounts for the process
  (\`/proc/<pid>/task/*/schedstat\`). The merchant, the members and the receiver live in another process and are not counted.
  Calls to the database are statements, ends of transactions included. What the service does by itself meanwhile is in
  the figures.
- A *data request, create to release* is all of it, one after the other: the merchant creates it, two of three members read
  their inboxes and approve, the release is charged, attested and sealed, and its webhook arrives.
- The other rows are of a thousand requests that are open at once, to businesses of 25 members. Votes are counted without
  the reading of the inbox, which has a row of its own and is read once all requests have been announced.
- Rows without a verdict have no target. Any verdict FAIL is a target missed, and ends the command with status 1.
`;
}

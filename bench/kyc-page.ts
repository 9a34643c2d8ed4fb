import { easVersion } from "./eas.ts";
import type { Result } from "./login.ts";
import { machineText, markdownTable } from "./performance-page.ts";
import { kycColumnNames } from "./row.ts";

/** The reference page of KYC: command, table, machine, and how each figure came about. */
export function kycPage({ rows, postgresVersion }: Result): string {
  return `# Performance of KYC

Written by \`npm run bench -- kyc --write\`; run it to get the figures of your machine.

${markdownTable(rows, kycColumnNames)}

Machine: ${machineText(postgresVersion)}.

## How it is measured

- The service runs as one process over the embedded PostgreSQL with its durable settings, ten connections, and, for
  orders, the embedded chain. \`ms\` are milliseconds on a CPU, user and system, all threads, as the kernel accounts for the
  process (\`/proc/<pid>/task/*/schedstat\`). The load, the wallets and the receivers live in another process and are not
  counted, nor is the chain's process. *Beside* is what the figure is compared with, as the row says.
- An *order* is all of it: the merchant creates it, the wallet opens the link and approves two fields, the order is
  initiated and confirmed on the chain, and its webhooks arrive, the data and the last status included. Calls
  to the database are statements, ends of transactions included. What the service does by itself meanwhile is in the
  figures: at one order a batch, each order also pays for the wait of its two transactions.
- Orders of a batch have users, reference keys and callback addresses of their own. The figure is the median of
  turns: at 1 a batch five of 10 orders one after the other, at 10 five of 4 batches, at 1000 three of a batch; after a
  warm-up of 300 orders or a batch of 1000. That a batch was one is checked by the transaction of its orders.
- Finished orders are written by SQL with all that stays of them: history, consent, batches, and six purged events. The
  service with few and the one with many of them run side by side, each over a PostgreSQL and a chain of its own, and
  take turns. CPU of the service and database calls may grow by a tenth; CPU of the database is printed.
- Gas of initiate and confirm is what the receipts on the embedded chain say. Gas of an issued document is a tenth of
  \`attest of 10\` in \`contracts/gas/CredentialRegistryTest.json\`, which the tests of the contracts check. A slot per order
  costs 73.7 k, as [the decisions](../internals/decisions.md) have it. A slot for each field is counted as
  22,100 gas for each storage slot written for the first time (EIP-2929), without calldata, events and access control: the
  least that such a contract costs. The Ethereum Attestation Service (EAS) was measured on the same node with the contracts
  of its npm package \`@ethereum-attestation-service/eas-contracts\`, ${easVersion}, by
  \`npm run bench -- eas --package <unpacked package>\`: once with the root of a document as data, as ours is, and once
  with a commitment for each of five fields.
- 3,000 \`verified\` or \`valid\` a second of CPU are 0.333 ms each. It is judged by the CPU of the service, and where 16
  are under way by that of PostgreSQL too: as many as 3,000 a second come side by side, and questions that wait share a
  statement. One at a time each has a statement of its own and wakes both processes; what that costs is printed. Medians
  of three rounds of 2,000 calls after twelve to warm up. The service has no chain at all here (\`CHAIN=off\`): nothing on
  the path could call one.
- Webhooks go to a thousand receivers on ports of their own. The row with hanging ones compares medians of five rounds of
  seconds by the clock on the wall, with a hundred that hang and with none in turns; those that hang hold all the
  attempts they may before the clock starts.
- The ratio is ours divided by what stands beside where the target is a share of it, and of the database's CPU of an
  order; of gas it is what stands beside divided by ours.
- Any verdict FAIL is a target missed, and ends the command with status 1.
`;
}

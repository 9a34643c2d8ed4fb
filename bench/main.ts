// `npm run bench -- <verb>`: what the product costs, and whether it keeps its promises about that.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { closeConnections } from "./http-client.ts";
import { benchKyc } from "./kyc.ts";
import { benchKycChecks } from "./kyc-checks.ts";
import { benchLogin, benchStreamsAlone, type Result } from "./login.ts";
import { machineText, performancePage } from "./performance-page.ts";
import { performancePlot } from "./performance-plot.ts";
import { benchQr } from "./qr.ts";
import {
  alignedTable,
  cellsOf,
  columnNames,
  failureLines,
  hasFailed,
  kycColumnNames,
  verdictOf,
} from "./row.ts";

const help = `npm run bench -- <verb> [--json] [--write]

  login     a login side by side with oidc-provider on the same PostgreSQL, then
            memory of 10,000 status streams, QR codes and start times (4 minutes at most)
  streams   memory of 10,000 idle status streams, and how fast an approval reaches its page
  qr        time and size of the QR code of a login
  kyc       orders end to end, gas, checks and deliveries
  kyc-checks  what \`verified\` and \`valid\` cost

  --json    print one JSON value instead of a table
  --write   login only: write docs/reference/performance.md and its plot
  --help    print this

CPU ratios, database calls and bytes that miss their target end it with status 1.
Times by the clock on the wall are printed only. It needs Linux.

Example: npm run bench -- login --write
`;

type Report = (line: string) => void;

const verbs: Record<string, (report: Report) => Promise<Result>> = {
  login: benchLogin,
  streams: benchStreamsAlone,
  kyc: benchKyc,
  "kyc-checks": benchKycChecks,
  qr: async () => ({ rows: benchQr(), postgresVersion: "" }),
};

function usageError(message: string): number {
  process.stderr.write(`${message}\n\n${help}`);
  return 2;
}

async function run(args: readonly string[]): Promise<number> {
  let parsed: {
    values: { help?: boolean; json?: boolean; write?: boolean };
    positionals: string[];
  };
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { help: { type: "boolean" }, json: { type: "boolean" }, write: { type: "boolean" } },
    });
  } catch (error) {
    return usageError(error instanceof Error ? error.message : "wrong arguments");
  }
  const { values, positionals } = parsed;
  if (values.help === true) {
    process.stdout.write(help);
    return 0;
  }
  const [name, ...rest] = positionals;
  const bench = name === undefined ? undefined : verbs[name];
  if (bench === undefined)
    return usageError(name === undefined ? "a verb is missing" : `there is no verb ${name}`);
  if (rest.length > 0) return usageError(`there is one verb; what is ${rest.join(" ")}?`);
  if (values.write === true && name !== "login") return usageError("--write is for login only");
  const result = await bench((line) => process.stderr.write(`${line}\n`));
  print(result, values.json === true, name === "login" ? columnNames : kycColumnNames);
  if (values.write === true) await write(result);
  return hasFailed(result.rows) ? 1 : 0;
}

function print({ rows, postgresVersion }: Result, asJson: boolean, names: readonly string[]): void {
  if (asJson) {
    const judged = rows.map((row) => ({ ...row, verdict: verdictOf(row) }));
    process.stdout.write(
      `${JSON.stringify({ machine: machineText(postgresVersion), ok: !hasFailed(rows), rows: judged })}\n`,
    );
    return;
  }
  process.stdout.write(`${alignedTable(rows, names)}\n\n${machineText(postgresVersion)}\n`);
  for (const line of failureLines(rows)) process.stdout.write(`${line}\n`);
}

async function write(result: Result): Promise<void> {
  const directory = join(import.meta.dirname, "..", "docs", "reference");
  await writeFile(
    join(directory, "performance.md"),
    performancePage(result, { columnNames, cellsOf }),
  );
  await writeFile(join(directory, "performance-login.svg"), performancePlot(result.rows));
}

process.exitCode = await run(process.argv.slice(2));
closeConnections();

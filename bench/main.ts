// `npm run bench -- <verb>`: what the product costs, and whether it keeps its promises about that.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { closeConnections } from "./http-client.ts";
import { benchEas } from "./eas.ts";
import { benchKyb } from "./kyb.ts";
import { kybPage } from "./kyb-page.ts";
import { benchKyc, benchKycOrders } from "./kyc.ts";
import { benchKycChecks } from "./kyc-checks.ts";
import { benchKycDeliveries } from "./kyc-deliveries.ts";
import { kycPage } from "./kyc-page.ts";
import { benchLogin, benchStreamsAlone, type Result } from "./login.ts";
import { machineText, performancePage } from "./performance-page.ts";
import { performancePlot } from "./performance-plot.ts";
import { benchQr } from "./qr.ts";
import {
  alignedTable,
  columnNames,
  failureLines,
  hasFailed,
  kybColumnNames,
  kycColumnNames,
  verdictOf,
} from "./row.ts";

const help = `npm run bench -- <verb> [--json] [--write]

  login     a login side by side with oidc-provider on the same PostgreSQL, then
            memory of 10,000 status streams, QR codes and start times (4 minutes at most)
  streams   memory of 10,000 idle status streams, and how fast an approval reaches its page
  qr        time and size of the QR code of a login
  kyc       the three below together (12 minutes)
  kyc-orders      orders end to end at 1, 10 and 1,000 a batch, with 10 thousand and a
                  million finished ones in the database, and gas (7 minutes)
  kyc-checks      what \`verified\` and \`valid\` cost (1 minute)
  kyc-deliveries  webhooks to a thousand receivers, then with a hundred that hang (2 minutes)
  kyb       gas of business wallets beside Safe 1.5.0, and what data requests and votes
            cost (3 minutes)
  eas       gas of the Ethereum Attestation Service, with the contracts of its npm package

  --json    print one JSON value instead of a table
  --write   write the page below docs/reference; login: performance.md and its plot,
            kyc: performance-kyc.md, kyb: performance-kyb.md
  --short   kyc, its parts and kyb only: a tenth of everything, to see that it runs
            (3 minutes); its figures mean little, so that it does not go with --write
  --package <directory>  eas only: the npm package
            @ethereum-attestation-service/eas-contracts, unpacked
  --help    print this

CPU ratios, database calls, gas and bytes that miss their target end it with status 1.
Times by the clock on the wall are printed only, but for webhooks beside hanging receivers.
Progress goes to standard error. It needs Linux.

Example: npm run bench -- login --write
Example: npm run bench -- kyc --write
Example: npm run bench -- kyb --short
`;

type Report = (line: string) => void;

interface Options {
  readonly isShort: boolean;
  readonly packageDirectory: string;
}

interface Verb {
  run(report: Report, options: Options): Promise<Result>;
  /** Writes its page. */
  write?(result: Result): Promise<void>;
  /** Takes --short. */
  readonly canBeShort?: boolean;
  /** Takes --package. */
  readonly needsPackage?: boolean;
  readonly columnNames: readonly string[];
}

/** A verb that takes --short. */
function sizedVerb(
  measure: (report: Report, isShort: boolean) => Promise<Result>,
  names: readonly string[],
): Verb {
  return {
    run: async (report, { isShort }) => measure(report, isShort),
    canBeShort: true,
    columnNames: names,
  };
}

const verbs: Record<string, Verb> = {
  login: { run: benchLogin, write: writeLogin, columnNames },
  streams: { run: benchStreamsAlone, columnNames },
  qr: { run: async () => ({ rows: benchQr(), postgresVersion: "" }), columnNames },
  kyc: { ...sizedVerb(benchKyc, kycColumnNames), write: writeKyc },
  "kyc-orders": sizedVerb(benchKycOrders, kycColumnNames),
  "kyc-checks": sizedVerb(benchKycChecks, kycColumnNames),
  "kyc-deliveries": sizedVerb(benchKycDeliveries, kycColumnNames),
  kyb: { ...sizedVerb(benchKyb, kybColumnNames), write: writeKyb },
  eas: {
    run: async (report, { packageDirectory }) => benchEas(report, packageDirectory),
    needsPackage: true,
    columnNames: ["", "EAS", "", "", "", ""],
  },
};

function usageError(message: string): number {
  process.stderr.write(`${message}\n\n${help}`);
  return 2;
}

interface Values {
  readonly help?: boolean;
  readonly json?: boolean;
  readonly write?: boolean;
  readonly short?: boolean;
  readonly package?: string;
}

async function run(args: readonly string[]): Promise<number> {
  let parsed: { values: Values; positionals: string[] };
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: "boolean" },
        json: { type: "boolean" },
        write: { type: "boolean" },
        short: { type: "boolean" },
        package: { type: "string" },
      },
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
  const verb = name === undefined ? undefined : verbs[name];
  if (verb === undefined)
    return usageError(name === undefined ? "a verb is missing" : `there is no verb ${name}`);
  if (rest.length > 0) return usageError(`there is one verb; what is ${rest.join(" ")}?`);
  const fault = faultOf(values, verb);
  if (fault !== null) return usageError(fault);
  const startedMs = performance.now();
  const result = await verb.run(
    (line) => {
      const seconds = Math.round((performance.now() - startedMs) / 1000);
      process.stderr.write(`${String(seconds).padStart(4)} s  ${line}\n`);
    },
    { isShort: values.short === true, packageDirectory: values.package ?? "" },
  );
  print(result, values.json === true, verb.columnNames);
  if (values.write === true) await verb.write?.(result);
  return hasFailed(result.rows) ? 1 : 0;
}

function faultOf(values: Values, verb: Verb): string | null {
  if (values.write === true && verb.write === undefined) return "this verb has no page to --write";
  if (values.short === true && verb.canBeShort !== true)
    return "--short is for kyc, its parts and kyb only";
  if (values.short === true && values.write === true)
    return "a --short run has no figures to write";
  if ((values.package !== undefined) !== (verb.needsPackage === true))
    return "eas, and it alone, needs --package";
  return null;
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

const reference = join(import.meta.dirname, "..", "docs", "reference");

async function writeLogin(result: Result): Promise<void> {
  const page = performancePage(result);
  await writeFile(join(reference, "performance.md"), page);
  await writeFile(join(reference, "performance-login.svg"), performancePlot(result.rows));
}

async function writeKyc(result: Result): Promise<void> {
  await writeFile(join(reference, "performance-kyc.md"), kycPage(result));
}

async function writeKyb(result: Result): Promise<void> {
  await writeFile(join(reference, "performance-kyb.md"), kybPage(result));
}

process.exitCode = await run(process.argv.slice(2));
closeConnections();

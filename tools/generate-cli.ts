// Writes docs/reference/cli.md from the verbs of the command line: node --conditions=source tools/generate-cli.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  describeOption,
  spell,
  usageOf,
  type Verb,
  verbs,
} from "../service/src/command-line/index.ts";

export const cliPage = join(import.meta.dirname, "../docs/reference/cli.md");

/** The reference page of the operator's command line. */
export function writeCliReference(): string {
  return [
    "# Command line",
    "",
    "Generated from the verbs of the program by `tools/generate-cli.ts`; a test keeps it current.",
    "",
    "`npm run svc -- <verb>` works on the database that the settings name: `DATABASE_URL`, else the embedded one under",
    "`DATA_DIR`, which is started for the verb when no service runs. Every verb takes `--json` (exactly one JSON value on",
    "standard output; use `npm run --silent`) and `--help`. Without `--json` results are tables for people, with dates",
    "in place of Unix seconds. A refusal is one line on standard error and status 1; wrong use is status 2.",
    "",
    "| Verb | |",
    "|---|---|",
    ...verbs.map((verb) => `| [\`${verb.name}\`](#${anchorOf(verb)}) | ${verb.summary} |`),
    ...verbs.flatMap(writeVerb),
    "",
  ].join("\n");
}

function writeVerb(verb: Verb): string[] {
  const rows = [
    ...(verb.parameters ?? []).map(({ name, description }) => [`<${name}>`, description]),
    ...Object.entries(verb.options ?? {}).map(([name, option]) => [
      spell(name, option),
      describeOption(option),
    ]),
  ];
  return [
    "",
    `## ${verb.name}`,
    "",
    verb.summary,
    ...(verb.notes === undefined ? [] : ["", verb.notes]),
    "",
    `    svc ${usageOf(verb)}`,
    ...(rows.length === 0 ? [] : ["", "| | |", "|---|---|"]),
    ...rows.map(
      ([left = "", right = ""]) =>
        `| \`${left.replaceAll("|", "\\|")}\` | ${right.replaceAll("|", "\\|")} |`,
    ),
    "",
    "Example:",
    "",
    `    svc ${verb.example}`,
  ];
}

function anchorOf(verb: Verb): string {
  return verb.name.replaceAll(" ", "-");
}

if (import.meta.main) writeFileSync(cliPage, writeCliReference());

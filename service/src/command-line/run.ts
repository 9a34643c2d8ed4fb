import { readFileSync } from "node:fs";
import { openContext } from "../compose.ts";
import { type Config, parseConfig } from "../platform/config/config.ts";
import { isOutage } from "../platform/database/database-fault.ts";
import { describeStartFault, firstFault } from "../platform/process/start-fault.ts";
import { escapeSteering } from "../platform/telemetry/steering.ts";
import { helpOf, listVerbs } from "./help.ts";
import { parseInput } from "./input.ts";
import { forPeople, shownText } from "./print.ts";
import { Problem } from "../platform/http/problems.ts";
import { BadNews, type Option, type Shell, UsageError, type Verb } from "./verb.ts";
import { verbs } from "./verbs.ts";

/** The input and output of a call of the command line, beside its arguments. */
export interface Terminal {
  /** @param isToldOnce true for a text that cannot be shown again: then a failure to write it has to be reported */
  out(text: string, isToldOnce?: boolean): void;
  err(text: string): void;
  /** Shows progress; absent if no person watches. */
  readonly watched?: (text: string) => void;
  /** Settings that override the environment of the process, by variable name. */
  readonly environment?: NodeJS.ProcessEnv;
}

/**
 * Runs one call. Results go to `out`: one JSON value with `--json`, else a table; a refusal is one line on `err`.
 *
 * @param given the arguments after the name of the program
 * @returns the exit status: 0, 1 for a refusal, 2 for wrong use
 */
export async function runCommandLine(
  given: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const args = spellOut(given);
  const verb = findVerb(args);
  if (verb === null) return answerWithoutVerb(args, terminal);
  let isJson = false;
  const print = (value: unknown): void => {
    if (value === undefined) return;
    const text = isJson ? `${escapeSteering(JSON.stringify(value))}\n` : forPeople(value);
    terminal.out(text, verb.isToldOnce === true);
  };
  try {
    const input = parseInput(verb, args.slice(wordsOf(verb).length));
    isJson = input.flag("json");
    if (input.flag("help")) terminal.out(helpOf(verb));
    else {
      const shell = openShell(verb, terminal, { mayMigrate: !input.flag("dry-run") });
      print(await verb.run(shell, input));
    }
    return 0;
  } catch (thrown) {
    const error = firstFault(thrown);
    if (error instanceof BadNews) print(error.value);
    const message =
      describeStartFault(error) ?? (error instanceof Error ? error.message : "failed");
    const isUsage = error instanceof UsageError;
    const more = isUsage ? `; see svc ${verb.name} --help` : amountsOf(error);
    const line = shownText(message.replaceAll(/\s*\n\s*/g, " "));
    terminal.err(`svc ${verb.name}: ${line}${more}\n`);
    return isUsage ? 2 : 1;
  }
}

/** The numbers in the details of a refusal, which its message does not contain. */
function amountsOf(error: unknown): string {
  if (!(error instanceof Problem)) return "";
  const details = Object.entries(error.options.details ?? {});
  const amounts = details.filter(([, value]) => typeof value === "number");
  return amounts.length === 0 ? "" : ` (${amounts.map((amount) => amount.join(" ")).join(", ")})`;
}

/**
 * `svc help client` and `svc client -h` are `svc client --help`, `svc --json client list` is `svc client list --json`.
 */
function spellOut(args: readonly string[]): string[] {
  const [first, ...rest] = args.map((arg) => (arg === "-h" ? "--help" : arg));
  if (first === undefined) return [];
  if (first === "help") return [...rest, "--help"];
  return first === "--json" ? [...spellOut(rest), first] : [first, ...rest];
}

/** The verb that the arguments begin with; if two match, the longer one. */
function findVerb(args: readonly string[]): Verb | null {
  const fitting = verbs.filter((verb) => wordsOf(verb).every((word, at) => args[at] === word));
  return fitting.toSorted((a, b) => b.name.length - a.name.length)[0] ?? null;
}

/**
 * `svc --version`; for `svc`, `svc --help` and `svc client --help` the verbs that begin with these words; anything else
 * is wrong use.
 */
function answerWithoutVerb(args: readonly string[], terminal: Terminal): number {
  if (args.length === 1 && args[0] === "--version") {
    terminal.out(`svc ${readVersion()}\n`);
    return 0;
  }
  const words = args.filter((arg, at) => !arg.startsWith("-") && !takesValue(args[at - 1]));
  const below = verbs.filter((verb) => words.every((word, at) => wordsOf(verb)[at] === word));
  if (below.length > 0 && args.includes("--help")) {
    terminal.out(listVerbs(below));
    return 0;
  }
  const given = words.join(" ");
  const verb = findVerb(words);
  if (given === "") terminal.err("svc: no verb is given; see svc --help\n");
  else if (verb !== null)
    terminal.err(`svc: options must come after the verb; see svc ${verb.name} --help\n`);
  else if (below.length === 0)
    terminal.err(`svc: there is no verb "${given}"; see svc ${groupOf(words)}--help\n`);
  else terminal.err(`svc: "${given}" needs one more word; see svc ${given} --help\n`);
  return 2;
}

/** Whether the argument is an option of any verb that takes a value: then the next argument is that value. */
function takesValue(arg: string | undefined): boolean {
  const isIt = ([name, { value, choices }]: [string, Option]): boolean =>
    arg === `--${name}` && (value !== undefined || choices !== undefined);
  return verbs.some(({ options = {} }) => Object.entries<Option>(options).some(isIt));
}

/** The first word and a blank, if verbs begin with it, so that a hint leads to their help instead of the whole. */
function groupOf([first = ""]: readonly string[]): string {
  return verbs.some((verb) => wordsOf(verb)[0] === first) ? `${first} ` : "";
}

function readVersion(): string {
  const about = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(about) as { version: string }).version;
}

function openShell(verb: Verb, terminal: Terminal, options: { mayMigrate: boolean }): Shell {
  // Verbs log nothing, since that would be mixed with their results; only `serve` logs as configured, and `settings`
  // shows what is configured.
  const isAsConfigured = verb.name === "serve" || verb.name === "settings";
  const config: Config = parseConfig({
    ...terminal.environment,
    ...(isAsConfigured ? {} : { LOG_LEVEL: "silent" }),
  });
  return {
    config,
    async withContext(work) {
      await using ctx = await openContext(config, { ...options, isBrief: true });
      const { commitsTotal } = ctx.db;
      try {
        return await work(ctx);
      } catch (error) {
        if (!isOutage(error) || ctx.db.commitsTotal === commitsTotal) throw error;
        // Something was committed, so a repetition might create or pay a second time.
        const fault = describeStartFault(error) ?? "the database is away";
        throw new Error(
          `${fault}; the change may have been made all the same: check before you run this again`,
          {
            cause: error,
          },
        );
      }
    },
    say: (line) => terminal.out(`${line}\n`),
    progress: progressOf(verb, terminal),
  };
}

const progressMs = 1000;

function progressOf(verb: Verb, { watched }: Terminal): Shell["progress"] {
  let toldAt = performance.now();
  return (text) => {
    const now = performance.now();
    if (watched === undefined || now - toldAt < progressMs) return;
    toldAt = now;
    watched(`svc ${verb.name}: ${text}\n`);
  };
}

function wordsOf(verb: Verb): string[] {
  return verb.name.split(" ");
}

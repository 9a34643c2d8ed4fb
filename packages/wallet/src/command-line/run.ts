import { ConcernsRefusal } from "../concern.ts";
import { WalletRefusal } from "../refusal.ts";
import { shownText, unshowable } from "../shown-text.ts";
import { backupVerbs } from "./backup-verbs.ts";
import { brokerVerbs } from "./broker-verbs.ts";
import { businessVerbs } from "./business-verbs.ts";
import { credentialVerbs } from "./credential-verbs.ts";
import type { Environment } from "./environment.ts";
import { helpOf, listVerbs } from "./help.ts";
import { openHome } from "./home.ts";
import { identityVerbs } from "./identity-verbs.ts";
import { inboxVerbs } from "./inbox-verbs.ts";
import { parseInput } from "./input.ts";
import { linkVerbs } from "./link-verbs.ts";
import { loginVerbs } from "./login-verbs.ts";
import { type Option, UsageError, type Verb } from "./verb.ts";

/** Every verb, in the order of the help. */
export const verbs: readonly Verb[] = [
  ...linkVerbs,
  ...credentialVerbs,
  ...loginVerbs,
  ...inboxVerbs,
  ...businessVerbs,
  ...identityVerbs,
  ...backupVerbs,
  ...brokerVerbs,
];

/** What a call runs in: where it writes to, and what its environment holds. */
export interface Shell {
  /**
   * @param isToldOnce true if the text cannot be shown again to somebody who did not read it
   * @returns whether it was written
   */
  out(text: string, isToldOnce?: boolean): Promise<boolean>;
  err(text: string): void;
  /** Whether a person reads `err` as it is written. Programs expect a single line, about the outcome. */
  readonly isWatched: boolean;
  readonly environment: Environment;
}

/**
 * Runs one call of the wallet's command line.
 *
 * @param given the arguments after the name of the program
 * @returns the exit status: 0; 1 for a refusal or wrong use; 2 if the digits of the page are needed
 */
export async function runCommandLine(given: readonly string[], shell: Shell): Promise<number> {
  const args = spellOut(given);
  const verb = findVerb(args);
  if (verb === null) return answerWithoutVerb(args, shell);
  // A refusal is one line: what was told before becomes a part of it.
  const told: string[] = [];
  const say = (line: string): void => shell.err(`wallet ${verb.name}: ${shownText(line)}\n`);
  try {
    const input = parseInput(verb, args.slice(wordsOf(verb).length));
    if (input.flag("help")) {
      await shell.out(helpOf(verb));
      return 0;
    }
    const home = openHome(shell.environment, {
      tell: (line) => void told.push(line),
      tellWait: (line) => {
        if (shell.isWatched) say(line);
      },
    });
    const { value, isToldOnce, told: tell, status = 0, line } = await verb.run(home, input);
    const isWritten = await shell.out(`${jsonOf(value)}\n`, isToldOnce);
    if (isWritten) await tell?.();
    for (const each of line === undefined ? told : [[line, ...told].join("; ")]) say(each);
    return status;
  } catch (error) {
    say([sayFault(error, verb), ...told].join("; "));
    return 1;
  }
}

/** One line about what went wrong; a concern comes with the flag that accepts it. */
function sayFault(error: unknown, verb: Verb): string {
  const message = (error instanceof Error ? error.message : "failed").replaceAll("\n", " ");
  if (error instanceof ConcernsRefusal) {
    const flags = error.concerns.map((concern) => `--accept ${concern}`).join(" ");
    return `refused: ${message}; to go on all the same: ${flags}`;
  }
  if (error instanceof WalletRefusal) return `refused (${error.code}): ${message}`;
  return error instanceof UsageError ? `${message}; see wallet ${verb.name} --help` : message;
}

/**
 * JSON whose text a terminal shows as it is: characters that could reorder, hide or control something are written
 * `\uXXXX`.
 */
export function jsonOf(value: unknown): string {
  return JSON.stringify(value).replaceAll(unshowable, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/** `wallet help logins` and `wallet logins -h` are `wallet logins --help`. */
function spellOut(given: readonly string[]): string[] {
  const args = given.map((arg) => (arg === "-h" ? "--help" : arg));
  return args[0] === "help" ? [...args.slice(1), "--help"] : args;
}

/** The verb that the arguments begin with; if two match, the longer one. */
function findVerb(args: readonly string[]): Verb | null {
  const fitting = verbs.filter((verb) => wordsOf(verb).every((word, at) => args[at] === word));
  return fitting.toSorted((a, b) => b.name.length - a.name.length)[0] ?? null;
}

async function answerWithoutVerb(args: readonly string[], shell: Shell): Promise<number> {
  const words = args.filter((arg, at) => !arg.startsWith("-") && !takesValue(args[at - 1]));
  const below = verbs.filter((verb) => words.every((word, at) => wordsOf(verb)[at] === word));
  if (below.length > 0 && args.includes("--help")) {
    await shell.out(listVerbs(below));
    return 0;
  }
  const given = shownText(words.join(" ").slice(0, 100));
  const verb = findVerb(words);
  if (given === "") shell.err("wallet: no verb is given; see wallet --help\n");
  else if (verb !== null)
    shell.err(`wallet: options must come after the verb; see wallet ${verb.name} --help\n`);
  else if (below.length === 0)
    shell.err(`wallet: there is no verb "${given}"; see wallet ${groupOf(words)}--help\n`);
  else shell.err(`wallet: "${given}" needs one more word; see wallet ${given} --help\n`);
  return 1;
}

/** Whether it is an option of some verb that takes a value: the next argument is that value, and no word. */
function takesValue(arg: string | undefined): boolean {
  const isIt = ([name, { value }]: [string, Option]): boolean =>
    arg === `--${name}` && value !== undefined;
  return verbs.some(({ options = {} }) => Object.entries<Option>(options).some(isIt));
}

/** The first word and a blank, if verbs begin with it: their list is shorter than that of all. */
function groupOf([first = ""]: readonly string[]): string {
  return verbs.some((verb) => wordsOf(verb)[0] === first) ? `${first} ` : "";
}

function wordsOf(verb: Verb): string[] {
  return verb.name.split(" ");
}

import type { Config } from "../platform/config/config.ts";
import type { Ctx } from "../platform/context.ts";

/** One option of a verb. Without `value` and `choices` it is a flag. */
export interface Option {
  readonly description: string;
  /** Placeholder of its value in the help, such as `uuid`. */
  readonly value?: string;
  /** Instead of `value`: the permitted values. Any other is wrong use. */
  readonly choices?: readonly string[];
  readonly required?: true;
  /** May be given several times. */
  readonly repeated?: true;
}

/** A value without a name, identified by its position after the verb. */
interface Parameter {
  readonly name: string;
  readonly description: string;
}

/** One verb of the operator's command line: the help, the reference page and the parsing all come from it. */
export interface Verb {
  /** Its words, such as `organization member add`. */
  readonly name: string;
  /** One sentence. */
  readonly summary: string;
  /** What else the operator has to know. */
  readonly notes?: string;
  /** True if the result holds a secret that cannot be shown again. */
  readonly isToldOnce?: true;
  /** True if it has no result, so that `--json` has no effect. */
  readonly hasNoResult?: true;
  readonly parameters?: readonly Parameter[];
  readonly options?: Readonly<Record<string, Option>>;
  /** A whole call, without `svc`. */
  readonly example: string;
  /** @returns the JSON value to print, or undefined for nothing */
  run(shell: Shell, input: Input): Promise<unknown>;
}

/** The environment of a verb, beside its input. */
export interface Shell {
  readonly config: Config;
  /** Runs against the database of the configuration, and closes it afterwards. */
  withContext<T>(work: (ctx: Ctx) => Promise<T>): Promise<T>;
  /** Writes a line to standard output at once, for verbs that keep running. */
  say(line: string): void;
  /** Shows the progress of a long verb to a person who watches, at most once a second; scripts do not get it. */
  progress(text: string): void;
}

/** The values given to a verb: only those that it declares, and all that it requires. */
export interface Input {
  /** A parameter or an option that is required. */
  text(name: string): string;
  optional(name: string): string | undefined;
  /** Values of a repeated option in the order given; undefined when it is absent. */
  list(name: string): readonly string[] | undefined;
  flag(name: string): boolean;
}

/**
 * The verb has a result that says that something is wrong: the value is printed as any result, the message as a
 * refusal, and the status is 1.
 */
export class BadNews extends Error {
  readonly value: unknown;

  constructor(message: string, value: unknown) {
    super(message);
    this.value = value;
  }
}

/** The command line was used wrongly; it ends with status 2. */
export class UsageError extends Error {}

/** The option of verbs that cannot be undone: such a verb then prints what it would do. */
export const dryRun = {
  description: "Show what would happen, without changing anything.",
} as const;

/** The actor in the audit trail for everybody who uses the command line. */
export const actor = "cli";

/** Makes the `run` of a verb that only needs the database. */
export function inContext(work: (ctx: Ctx, input: Input) => Promise<unknown>): Verb["run"] {
  return async (shell, input) => shell.withContext(async (ctx) => work(ctx, input));
}

/**
 * Reads the id of a key; says how to get it from the whole key, which is what finders of leaked keys have.
 *
 * @throws {UsageError}
 */
export function keyIdOf(input: Input): string {
  const id = input.text("key");
  if (id.startsWith("svc_"))
    throw new UsageError(
      "<key> must be the key's id: the 12 characters after the second underscore",
    );
  return id;
}

/** Reads a whole number of at most 9 digits. @throws {UsageError} */
export function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new UsageError(`${name} must be a whole number of at most 9 digits`);
  return Number(text);
}

/** Reads a time in Unix seconds; undefined if it was not given. @throws {UsageError} */
export function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,11}$/.test(text))
    throw new UsageError(`--${name} must be a time in Unix seconds`);
  return Number(text);
}

/** Reads `on` or `off`. @throws {UsageError} */
export function switchOf(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text !== "on" && text !== "off") throw new UsageError(`--${name} must be on or off`);
  return text === "on";
}

/** Reads one of several words. @throws {UsageError} */
export function choiceOf<const T extends string>(
  name: string,
  text: string,
  choices: readonly T[],
): T {
  const found = choices.find((choice) => choice === text);
  if (found === undefined) throw new UsageError(`${name} must be one of ${choices.join(", ")}`);
  return found;
}

import type { Home } from "./home.ts";

/** One option of a verb. Without `value` it is a flag. */
export interface Option {
  readonly description: string;
  /** Placeholder of its value in the help. */
  readonly value?: string;
  readonly repeated?: true;
}

/** One verb: the help and the parsing come from it. */
export interface Verb {
  /** Its words, such as `logins end`. */
  readonly name: string;
  /** One sentence. */
  readonly summary: string;
  readonly notes?: string;
  /** Values without a name, in their order after the verb, and what they are. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** The last parameter may be missing. */
  readonly isLastOptional?: true;
  readonly options?: Readonly<Record<string, Option>>;
  /** A whole call, without `npm run wallet --`. */
  readonly example: string;
  run(home: Home, input: Input): Promise<Reply>;
}

/** What a verb answers. */
export interface Reply {
  /** The one JSON value on standard output. */
  readonly value: unknown;
  /** True if the value contains words that are shown only once, so that a closed pipe counts as a failure. */
  readonly isToldOnce?: boolean;
  /** Called once the value is written. Until then the same call must give the same result again. */
  readonly told?: () => Promise<void>;
  /** 1: refused by the other side, as `line` says; 2: the digits of the page are needed. */
  readonly status?: 1 | 2;
  /** One line on standard error. */
  readonly line?: string;
}

/** The values given to a verb: only those that it declares. */
export interface Input {
  /** A parameter. */
  text(name: string): string;
  optional(name: string): string | undefined;
  /** Values of a repeated option, each also split at commas. */
  list(name: string): readonly string[];
  flag(name: string): boolean;
}

/** The command line was used wrongly. */
export class UsageError extends Error {
  override name = "UsageError";
}

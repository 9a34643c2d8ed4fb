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
  /** Values that stand without a name, in order after the verb, and what they are. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** The last of them may be missing. */
  readonly mayLack?: true;
  readonly options?: Readonly<Record<string, Option>>;
  /** A whole call, without `npm run wallet --`. */
  readonly example: string;
  run(home: Home, input: Input): Promise<Reply>;
}

/** What a verb answers. */
export interface Reply {
  /** The one JSON value on standard output. */
  readonly value: unknown;
  /** Words in it are told this once: a reader who went is a failure. */
  readonly isToldOnce?: boolean;
  /** 1: refused by the other side, which `line` says; 2: the digits of the page are needed. */
  readonly status?: 1 | 2;
  /** One line on standard error. */
  readonly line?: string;
}

/** The values given to a verb: declared ones alone. */
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

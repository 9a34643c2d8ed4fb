import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { choiceOf, type Input, UsageError, type Verb } from "./verb.ts";

/** Options that every verb takes. */
export const commonOptions = {
  json: { description: "Print the result as one JSON value." },
  help: { description: "Print this help." },
} as const;

/** The arguments after the verb's words, parsed but unchecked. */
interface Given {
  readonly values: Record<string, string | boolean | (string | boolean)[] | undefined>;
  readonly positionals: readonly string[];
}

/** Parses and checks the arguments after the verb's words. @throws {UsageError} */
export function parseInput(verb: Verb, args: readonly string[]): Input {
  const given = split(verb, args);
  if (given.values["help"] !== true) refuseMissing(verb, given);
  refuseUnfit(verb, given);
  const { values, positionals } = given;
  const { parameters = [] } = verb;
  const optional = (name: string): string | undefined => {
    const at = parameters.findIndex((parameter) => parameter.name === name);
    const value = at === -1 ? values[name] : positionals[at];
    return typeof value === "string" ? value : undefined;
  };
  return {
    optional,
    text(name) {
      const value = optional(name);
      if (value === undefined) throw new UsageError(`${name} is missing`);
      return value;
    },
    list(name) {
      const value = values[name];
      return Array.isArray(value) ? value.map(String) : undefined;
    },
    flag: (name) => values[name] === true,
  };
}

function refuseMissing({ parameters = [], options = {} }: Verb, given: Given): void {
  const missing = parameters[given.positionals.length];
  if (missing !== undefined) throw new UsageError(`<${missing.name}> is missing`);
  for (const [name, { required }] of Object.entries(options))
    if (required && given.values[name] === undefined) throw new UsageError(`--${name} is missing`);
}

/** Refuses values outside an option's choices, and arguments for which the verb has no parameter. */
function refuseUnfit({ parameters = [], options = {} }: Verb, given: Given): void {
  for (const [name, { choices }] of Object.entries(options)) {
    const value = given.values[name];
    if (choices !== undefined && typeof value === "string") choiceOf(`--${name}`, value, choices);
  }
  const unexpected = given.positionals[parameters.length];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument "${unexpected}"`);
}

function split(verb: Verb, args: readonly string[]): Given {
  const options: ParseArgsOptionsConfig = {};
  for (const [name, option] of Object.entries({ ...verb.options, ...commonOptions })) {
    const takesValue = "value" in option || "choices" in option;
    const isRepeated = "repeated" in option;
    options[name] = { type: takesValue ? "string" : "boolean", multiple: isRepeated };
  }
  try {
    const config = { args: [...args], options, allowPositionals: true, tokens: true } as const;
    const { values, positionals, tokens } = parseArgs(config);
    const given = new Set<string>();
    for (const token of tokens) {
      if (token.kind !== "option" || options[token.name]?.multiple === true) continue;
      // A flag may be given twice, such as `--help` after `help`.
      if (token.value === undefined) continue;
      if (given.has(token.name)) throw new UsageError(`--${token.name} is given twice`);
      given.add(token.name);
    }
    return { values, positionals };
  } catch (error) {
    throw new UsageError(sayFault(error), { cause: error });
  }
}

/** Node's message without its advice on positional values that begin with a dash: no verb takes such a value. */
function sayFault(error: unknown): string {
  const message = error instanceof Error ? error.message : "unreadable options";
  return message.replace(/\. To specify a positional argument .*$/s, "");
}

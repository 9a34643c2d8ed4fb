import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { UsageError, type Input, type Verb } from "./verb.ts";

/** What every verb takes. */
export const commonOptions = { help: { description: "Print this help." } } as const;

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** Reads what follows the verb's words. @throws {UsageError} */
export function parseInput(verb: Verb, args: readonly string[]): Input {
  const { values, positionals } = split(verb, args);
  const names = Object.keys(verb.parameters ?? {});
  const needed = verb.isLastOptional === true ? names.slice(0, -1) : names;
  const missing = needed[positionals.length];
  if (missing !== undefined && values["help"] !== true)
    throw new UsageError(`<${missing}> is missing`);
  if (positionals.length > names.length)
    throw new UsageError(
      `unexpected argument "${(positionals[names.length] ?? "").slice(0, 100)}"`,
    );
  const optional = (name: string): string | undefined => {
    const at = names.indexOf(name);
    const value = at === -1 ? values[name] : positionals[at];
    return typeof value === "string" ? value : undefined;
  };
  return {
    optional,
    text: (name) => optional(name) ?? "",
    list(name) {
      const value = values[name];
      const given = Array.isArray(value) ? value.map(String) : [];
      return given.flatMap((each) => each.split(",")).filter((each) => each !== "");
    },
    flag: (name) => values[name] === true,
  };
}

function split(verb: Verb, args: readonly string[]): { values: Values; positionals: string[] } {
  const options: ParseArgsOptionsConfig = {};
  for (const [name, option] of Object.entries({ ...verb.options, ...commonOptions })) {
    const type = "value" in option ? "string" : "boolean";
    options[name] = { type, multiple: "repeated" in option };
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

/** Node's message without its advice on values that begin with a dash: no verb takes such a value without a name. */
function sayFault(error: unknown): string {
  const message = error instanceof Error ? error.message : "unreadable options";
  return message.replace(/\. To specify a positional argument .*$/s, "");
}

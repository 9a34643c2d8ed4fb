import { commonOptions } from "./input.ts";
import type { Option, Verb } from "./verb.ts";

const program = "npm run wallet --";

/** The help of one verb: what it does, its syntax, its options, and a call that works. */
export function helpOf(verb: Verb): string {
  const { parameters = {}, options = {} } = verb;
  const rows = [
    ...Object.entries(parameters).map(([name, description]) => [`<${name}>`, description] as const),
    ...Object.entries<Option>({ ...options, ...commonOptions }).map(
      ([name, option]) => [spell(name, option), option.description] as const,
    ),
  ];
  const words = Object.keys(parameters).map((name) => `<${name}>`);
  const last = verb.isLastOptional === true ? words.splice(-1).map((word) => `[${word}]`) : [];
  const usage = [verb.name, ...words, ...last].join(" ");
  return [
    verb.summary,
    ...(verb.notes === undefined ? [] : ["", verb.notes]),
    "",
    `Usage: ${program} ${usage} [options]`,
    "",
    ...align(rows),
    "",
    `Example: ${program} ${verb.example}`,
    "",
  ].join("\n");
}

/** The list of verbs. */
export function listVerbs(verbs: readonly Verb[]): string {
  return [
    `Usage: ${program} <verb> [options]`,
    "",
    ...align(verbs.map((verb) => [verb.name, verb.summary] as const)),
    "",
    `The result is one JSON value on standard output. A refusal is one line on standard error and status 1.`,
    `Example: ${program} show --help`,
    "",
  ].join("\n");
}

function spell(name: string, option: Option): string {
  return option.value === undefined ? `--${name}` : `--${name} <${option.value}>`;
}

function align(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

import { commonOptions } from "./input.ts";
import type { Option, Verb } from "./verb.ts";

/** The help of one verb: what it does, its syntax, its options, and a call that works. */
export function helpOf(verb: Verb): string {
  const { parameters = [], options = {} } = verb;
  const { json, help } = commonOptions;
  const common = verb.hasNoResult === true ? { help } : { json, help };
  const rows = [
    ...parameters.map(({ name, description }) => [`<${name}>`, description] as const),
    ...Object.entries({ ...options, ...common }).map(
      ([name, option]) => [spell(name, option), describeOption(option)] as const,
    ),
  ];
  return [
    verb.summary,
    ...(verb.notes === undefined ? [] : ["", verb.notes]),
    "",
    `Usage: svc ${usageOf(verb)}`,
    "",
    ...align(rows),
    "",
    `Example: svc ${verb.example}`,
    "",
  ].join("\n");
}

/** The help for several verbs, all or those that begin with certain words. */
export function listVerbs(verbs: readonly Verb[]): string {
  return [
    "Usage: svc <verb> [options]",
    "",
    ...align(verbs.map((verb) => [verb.name, verb.summary] as const)),
    "",
    "Run svc <verb> --help for details of a verb and svc --version for the version. Settings come from the environment; svc settings lists them.",
    "",
  ].join("\n");
}

/** The verb with its parameters and required options. */
export function usageOf(verb: Verb): string {
  const required = Object.entries(verb.options ?? {}).filter(([, option]) => option.required);
  return [
    verb.name,
    ...(verb.parameters ?? []).map(({ name }) => `<${name}>`),
    ...required.map(([name, option]) => spell(name, option)),
    "[options]",
  ].join(" ");
}

/** An option as it is written. */
export function spell(name: string, option: Option): string {
  const value = option.choices?.join("|") ?? option.value;
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
}

/** What an option means, and how often it may be given. */
export function describeOption(option: Option): string {
  const more = option.repeated ? " May be repeated." : "";
  return `${option.description}${more}${option.required ? " Required." : ""}`;
}

function align(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

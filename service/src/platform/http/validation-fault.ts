import { sayPattern } from "./text-form.ts";

/** A fault as the validator of the framework reports it. */
export interface ValidationFault {
  instancePath: string;
  keyword?: string;
  params?: Record<string, unknown>;
  message?: string;
}

/**
 * As {@link sayFault}, for a form or query: its parameters are texts, and only one that was given more than once is a
 * list.
 */
export function sayFormFault(validation: readonly ValidationFault[]): string {
  const { instancePath = "", keyword, params } = validation[0] ?? {};
  const isRepeated = instancePath !== "" && keyword === "type" && params?.["type"] === "string";
  return isRepeated
    ? `${shownName(pathOf(instancePath))} is given more than once`
    : sayFault(validation);
}

/** A fault of a JSON body in plain words, beginning with the member that it is about. */
export function sayFault(validation: readonly ValidationFault[]): string {
  const [first] = validation;
  const path = pathOf(first?.instancePath ?? "");
  const missing = first?.params?.["missingProperty"];
  const member = missing ?? first?.params?.["additionalProperty"];
  if (typeof member === "string") {
    const name = [path, member].filter((part) => part !== "").join(".");
    return `${shownName(name)} ${missing === undefined ? "is unknown" : "is missing"}`;
  }
  const words = wordsOf(validation, first?.instancePath);
  const fault =
    words.length > 0
      ? `must be one of ${words.join(", ")}`
      : (sayPattern(first?.params?.["pattern"]) ?? sayKeyword(first));
  return `${path === "" ? "the body" : shownName(path)} ${fault ?? "is wrong"}`;
}

/** The way to a member, as other refusals write it: `infos[0].pepper`. */
function pathOf(pointer: string): string {
  return pointer
    .replaceAll(/\/(\d+)(?=\/|$)/g, "[$1]")
    .replaceAll("/", ".")
    .replace(/^\./, "");
}

const types: Readonly<Record<string, string>> = {
  object: "must be a JSON object",
  array: "must be an array",
  string: "must be a string",
  number: "must be a number",
  integer: "must be a whole number",
  boolean: "must be true or false",
};

/** A fault of the validator in plain words, without the terms of its schema. */
function sayKeyword(fault: ValidationFault | undefined): string | undefined {
  const { keyword = "", params = {}, message } = fault ?? {};
  const limit = String(params["limit"]);
  switch (keyword) {
    case "type":
      return types[String(params["type"])] ?? message;
    case "minLength":
      return limit === "1" ? "must not be empty" : `must have at least ${limit} characters`;
    case "minItems":
      return limit === "1" ? "must not be empty" : `must have at least ${limit} items`;
    case "maxItems":
      return `must have at most ${limit} items`;
    case "minimum":
      return `must be at least ${limit}`;
    case "maximum":
      return `must be at most ${limit}`;
    case "maxLength":
      return message?.replace("must NOT have more than", "must have at most");
    default:
      return message;
  }
}

/** The caller may have invented the name. */
const shownName = (name: string): string => name.slice(0, 100).toWellFormed();

/** The validator reports each word of a choice as a separate fault. */
function wordsOf(
  validation: readonly ValidationFault[],
  path: string | undefined,
): readonly string[] {
  return validation
    .filter(({ instancePath }) => instancePath === path)
    .map(({ params }) => params?.["allowedValue"])
    .filter((word) => typeof word === "string");
}

import { isNetwork } from "../http/client-address.ts";

/** One documented setting: its variable, its meaning, and how its text becomes a value. */
export interface Setting<T> {
  readonly env: string;
  readonly unit: string;
  readonly description: string;
  /** Shown in the docs; `null` means that the setting is absent unless given. */
  readonly fallback: string | null;
  readonly secret?: true;
  parse(text: string): T;
}

/** Any text. */
export const text = (value: string): string => value;
const list = (value: string): readonly string[] =>
  Object.freeze(
    value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  );

/** A whole number of at most nine digits between two bounds, both allowed. */
export function whole(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d{1,9}$/.test(value) || number < least || number > most) {
      throw new Error(`must be a whole number from ${least} to ${most}`);
    }
    return number;
  };
}

/** One of the words. */
export function oneOf<const T extends string>(...choices: T[]): (value: string) => T {
  return (value) => {
    const found = choices.find((choice) => choice === value);
    if (found === undefined) throw new Error(`must be one of ${choices.join(", ")}`);
    return found;
  };
}

/** `true` or `false`. */
export function flag(value: string): boolean {
  return oneOf("true", "false")(value) === "true";
}

/** A bare http(s) origin, without trailing slash. */
export function httpUrl(value: string): string {
  const url = URL.parse(value);
  const isBare =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.pathname === "/" &&
    url.search === "" &&
    url.hash === "" &&
    url.username === "" &&
    url.password === "";
  if (!isBare) throw new Error("must be an http(s) origin such as https://id.example.com");
  return url.origin;
}

/**
 * The address of a PostgreSQL, in the forms that its own tools accept: the host may be empty, or a socket's directory
 * in `?host=`; or in the forms that the driver accepts for a socket, `socket:/directory?db=name` and `/directory name`.
 */
export function postgresUrl(value: string): string {
  // The driver would look a list of hosts up as one name. A socket's directory may have a comma in its name.
  const areSeveral =
    /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?[^/?#@]*,[^/?#@]*(?:[/?#]|$)/i.test(value) ||
    /[?&]host=(?!\/|%2f)[^&#]*(?:,|%2c)/i.test(value);
  if (areSeveral) throw new Error("must name a single host, which leads to the primary");
  const isAddress =
    /^postgres(?:ql)?:\/\//i.test(value) && URL.canParse(value.replace("@/", "@host/"));
  const isSocket = /^(?:socket:)?\//.test(value);
  if (!isAddress && !isSocket)
    throw new Error("must be an address such as postgresql://user:password@host/name");
  return value;
}

/** Addresses and CIDR blocks, separated by commas. */
export function networks(value: string): readonly string[] {
  const given = list(value);
  if (!given.every(isNetwork)) {
    throw new Error("must be addresses or CIDR blocks such as 10.0.0.0/8, separated by commas");
  }
  return given;
}

/** One to four master keys, newest first. */
export function masterKeys(value: string): readonly string[] {
  const keys = list(value);
  if (keys.length === 0 || keys.length > 4 || !keys.every((key) => /^[0-9a-f]{64}$/.test(key))) {
    throw new Error(
      "must be one to four keys of 64 lower-case hex digits, separated by commas, newest first",
    );
  }
  if (new Set(keys).size < keys.length) throw new Error("must not hold the same key twice");
  return keys;
}

/** Checks the shape of one row of the table and keeps the type of its value. */
export function setting<T>(given: Setting<T>): Setting<T> {
  return given;
}

import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { WalletRefusal } from "../refusal.ts";
import { UsageError, type Input } from "./verb.ts";

const secretLengthMax = 4096;

/**
 * Standard input is read once, to its end, so only one secret can be read from it.
 *
 * @throws {UsageError} if several of these options are `-`
 */
export function requireOneFromInput(input: Input, names: readonly string[]): void {
  const [first, second] = names.filter((name) => input.optional(name) === "-");
  if (first === undefined || second === undefined) return;
  throw new UsageError(`only one of ${first} and ${second} can be -, which is standard input`);
}

/** Reads a secret from a file, or from standard input if the path is `-`; without the line break at its end. */
export async function readSecretFile(path: string): Promise<string> {
  let content: string;
  try {
    content = path === "-" ? await text(process.stdin) : await readFile(path, "utf8");
  } catch (cause) {
    throw new WalletRefusal("invalid_input", `${path} cannot be read`, { cause });
  }
  if (content.length > secretLengthMax)
    throw new WalletRefusal("invalid_input", `${path} is too long for a secret`);
  return content.replace(/\r?\n$/, "");
}

/**
 * Asks twice for a new secret: what is typed is not shown, and with a typing error the secret would never open
 * anything.
 *
 * @returns null if there is no terminal
 * @throws {WalletRefusal} invalid_input if the two differ
 */
export async function askNewSecret(question: string, ask = askSecret): Promise<string | null> {
  const secret = await ask(question);
  if (secret === null || (await ask("Repeat it: ")) === secret) return secret;
  throw new WalletRefusal("invalid_input", "the two entries differ: nothing was written");
}

/**
 * Asks on the terminal without showing what is typed; null if there is no terminal, or if it has been read to its end
 * as a file.
 */
export async function askSecret(question: string): Promise<string | null> {
  if (!process.stdin.isTTY || process.stdin.readableEnded) return null;
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: silence, terminal: true });
  try {
    // Standard output carries only the result.
    process.stderr.write(question);
    return await reader.question("");
  } finally {
    reader.close();
    process.stderr.write("\n");
  }
}

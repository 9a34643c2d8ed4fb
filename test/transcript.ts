// Runs the transcripts of the documentation: what stands after `$ ` is run, what follows is compared.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { callWallet } from "../packages/wallet/test/call-wallet.ts";
import { runCommandLine } from "../service/src/command-line/index.ts";

export const root = join(import.meta.dirname, "..");

/** One command of a transcript and what it prints, standard error included. */
export interface Step {
  readonly command: string;
  readonly output: string;
}

/** Values of placeholders such as `<link>`: read from an earlier output, or given by a person. */
export type Bindings = Map<string, string>;

/** Values of placeholders that are in no output, because a person sees them in the browser. */
export type Person = Readonly<Record<string, () => Promise<string>>>;

/** The steps of all blocks of a page that are marked `console`. A line that ends in a backslash goes on. */
export function stepsOf(page: string): Step[] {
  const blocks = [...page.matchAll(/^```console\n([\s\S]*?)^```$/gm)].map(
    ([, block = ""]) => block,
  );
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((text) => {
        const [, command = "", output = ""] = /^((?:.*\\\n)*.*)\n([\s\S]*)$/.exec(text) ?? [];
        return { command, output: output.trimEnd() };
      }),
  );
}

/** The program that a page shows: all of its blocks marked `ts`, one after the other. */
export function programOf(page: string): string {
  return [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block).join("\n");
}

/** A call of one of the command lines: words, as they are or quoted, and nothing else that a shell reads. */
const plainCall =
  /^npm run (?:-s|--silent) (?<program>svc|wallet) -- (?<words>(?:'[^']*'|"[^"$`\\]*"|[\w./:=@,-]|\s|\\\n)+)$/;

/**
 * Runs one command as a shell in the root of the repository would. A plain call of one of the command lines runs within
 * this process, which takes a third of the CPU time for the same output; for anything else there is a shell.
 */
export async function run(command: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const { program, words } = plainCall.exec(command)?.groups ?? {};
  if (words === undefined) return runByShell(command, environment);
  const args = (words.match(/(?:'[^']*'|"[^"]*"|[^\s'"\\])+/g) ?? []).map((word) =>
    word.replaceAll(/["']/g, ""),
  );
  if (program === "wallet") {
    const { out, err } = await callWallet(args, environment["DATA_DIR"] ?? "");
    return (out + err).trimEnd();
  }
  let output = "";
  const write = (text: string): void => void (output += text);
  await runCommandLine(args, { out: write, err: write, environment });
  return output.trimEnd();
}

/** Runs one command where the documentation says: in the root of the repository, by a shell. */
export async function runByShell(command: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const path = `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`;
  const child = spawn("sh", ["-c", `{ ${direct(command)}\n} 2>&1`], {
    cwd: root,
    env: { ...process.env, ...environment, PATH: path },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await once(child, "close");
  return output.trimEnd();
}

/** Runs a program in TypeScript, as a module in the root of the repository. */
export function runProgram(...lines: readonly string[]): Promise<string> {
  const command = `node --conditions=source --input-type=module-typescript --eval "$PROGRAM"`;
  return runByShell(command, { PROGRAM: lines.join("\n") });
}

const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

/** npm itself costs more than what it starts: its scripts are started as package.json says. */
function direct(command: string): string {
  return command.replaceAll(/\bnpm run (?:-s|--silent) (\w+) --/g, (_, name: string) => {
    const script = scripts[name];
    assert.ok(script, `package.json has no script ${name}`);
    return script.replace(/\bexec /, "");
  });
}

const placeholder = /<([a-z]+)>/g;

/** Puts values in the place of `<name>`; a person is asked for those that no output had. */
export async function fill(text: string, bindings: Bindings, person: Person): Promise<string> {
  for (const [, name = ""] of text.matchAll(placeholder)) {
    if (bindings.has(name)) continue;
    const ask = person[name];
    assert.ok(ask, `nothing says what <${name}> is`);
    bindings.set(name, await ask());
  }
  return text.replaceAll(placeholder, (_, name: string) => bindings.get(name) ?? "");
}

/** Compares an output with what a page says. `...` is anything; `<name>` is its earlier value, or takes one here. */
export function compare(actual: string, expected: string, bindings: Bindings): void {
  const names: string[] = [];
  const pattern = expected
    .split(/(\.\.\.|<[a-z]+>)/)
    .map((part) => {
      if (part === "...") return "[\\s\\S]*?";
      const name = /^<([a-z]+)>$/.exec(part)?.[1];
      if (name === undefined) return RegExp.escape(part);
      const known = bindings.get(name);
      if (known !== undefined) return RegExp.escape(known);
      if (names.includes(name)) return `\\k<${name}>`;
      names.push(name);
      return `(?<${name}>[^\\s"',]+)`;
    })
    .join("");
  const match = new RegExp(`^${pattern}$`).exec(actual);
  assert.ok(match, `the page says\n${expected}\nthe command printed\n${actual}`);
  for (const name of names) bindings.set(name, match.groups?.[name] ?? "");
}

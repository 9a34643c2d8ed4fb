import { lstat, readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import { restoreBackup, writeBackup, type Restored } from "../backup.ts";
import { newMnemonic } from "../identity.ts";
import { WalletRefusal } from "../refusal.ts";
import { findIdentity, hasIdentity, sealIdentity } from "../vault.ts";
import { findPassphrase, findSecret, readPassphrase, type Home } from "./home.ts";
import { identityOptions } from "./identity-options.ts";
import { writeNewFile } from "./new-file.ts";
import { requireOneFromInput } from "./secret-input.ts";
import { membersOf } from "../transport.ts";
import type { Input, Verb } from "./verb.ts";

/** The verbs that protect against the loss of a device. */
export const backupVerbs: readonly Verb[] = [
  {
    name: "backup",
    summary: "Back up an identity with its verified fields and history, as one sealed text.",
    notes:
      "The backup is sealed with the passphrase of the vault or the one you give. If there is none, it is sealed with twelve new words, which are printed with the result, only once, before the file is written.",
    options: {
      ...identityOptions,
      file: {
        value: "path",
        description:
          "Write the backup to this new file, which only its owner can read, instead of standard output.",
      },
    },
    example: "backup --as alice --file alice.backup",
    async run(home, input) {
      const file = input.optional("passphrase-file");
      const choice = { name: input.optional("as"), passphraseFile: file };
      const { name, secret, passphrase: known } = await findSecret(home, choice);
      const prompt = { question: "New passphrase for the backup: ", isNew: true } as const;
      const given = known ?? (await findPassphrase(home, file, prompt));
      const passphrase = given ?? newMnemonic();
      const backup = await writeBackup(home, { name, secret, passphrase });
      const path = input.optional("file");
      const words = given === null ? { passphrase } : {};
      if (path === undefined) return { value: { backup, ...words }, isToldOnce: given === null };
      const write = async (): Promise<void> => writeFile(path, backup);
      if (given !== null) {
        await write();
        return { value: { file: path } };
      }
      // Nobody could open a file whose words were lost, and it would be in the way of the next: the words come first.
      if (await existsAt(path)) throw refusalOf(path, "EEXIST");
      return { value: { file: path, ...words }, isToldOnce: true, told: write };
    },
  },
  {
    name: "restore",
    summary: "Restore a backup: the identity into the vault, its fields and history beside it.",
    notes:
      "What exists already stays as it is, unless it cannot be read. The passphrase of the backup becomes the passphrase of the identity in the vault. If the backup includes the words that `backup` printed, you need not give them again.",
    parameters: {
      backup:
        "The backup's text, the whole JSON that `backup` printed, or a file that holds either; - for standard input.",
    },
    options: identityOptions,
    example: "restore alice.backup --as alice",
    async run(home, input) {
      requireOneFromInput(input, ["backup", "passphrase-file"]);
      const { text, words } = await readBackup(input.text("backup"));
      const file = input.optional("passphrase-file");
      const prompt = { question: "Passphrase of the backup: " };
      const printed = file === undefined ? words : undefined;
      const passphrase = printed ?? (await readPassphrase(home, file, prompt));
      const restored = await restoreBackup(home, { text, passphrase });
      const name = await keepIdentity(home, input, { restored, passphrase });
      return { value: { name, address: restored.address, credentials: restored.credentials } };
    },
  },
];

async function writeFile(path: string, backup: string): Promise<void> {
  await writeNewFile(path, `${backup}\n`).catch((cause: unknown) => {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    throw refusalOf(path, code, cause);
  });
}

function refusalOf(path: string, code: string, cause?: unknown): WalletRefusal {
  const fault = code === "EEXIST" ? "exists already" : `cannot be written (${code})`;
  return new WalletRefusal("invalid_input", `${path} ${fault}`, { cause });
}

async function existsAt(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** The text itself or the JSON that `backup` printed, with its words if it printed any; or a file that holds either. */
async function readBackup(given: string): Promise<{ text: string; words?: string }> {
  const isPrinted = given.startsWith("svc-wallet-backup-") || given.trimStart().startsWith("{");
  const content = isPrinted ? given : await readContent(given);
  const { backup, passphrase } = membersOf(content);
  if (typeof backup !== "string") return { text: content };
  return { text: backup, ...(typeof passphrase === "string" ? { words: passphrase } : {}) };
}

async function readContent(path: string): Promise<string> {
  try {
    return path === "-" ? await textOf(process.stdin) : await readFile(path, "utf8");
  } catch (cause) {
    throw new WalletRefusal("invalid_input", `${path} cannot be read`, { cause });
  }
}

/**
 * An identity that the vault or the demo world has under this name and address stays as it is; a ruined file is
 * replaced.
 */
async function keepIdentity(
  home: Home,
  input: Input,
  { restored, passphrase }: { restored: Restored; passphrase: string },
): Promise<string> {
  const name = input.optional("as") ?? restored.name;
  const { address, secret } = restored;
  const isThere = await hasIdentity(home.storage, name);
  const known = isThere ? await findIdentity(home.storage, name) : home.demo?.identities.get(name);
  if (known?.address === address) return name;
  await sealIdentity(home, { name, secret, passphrase, mends: true });
  return name;
}

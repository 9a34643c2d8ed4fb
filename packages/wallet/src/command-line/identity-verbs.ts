import type { Hex } from "@svc/protocol";
import { newMnemonic, type IdentitySecret } from "../identity.ts";
import { listKeysOf } from "../records.ts";
import { WalletRefusal } from "../refusal.ts";
import {
  changePassphrase,
  listIdentities,
  removeIdentity,
  requireIdentity,
  sealIdentity,
  type VaultEntry,
} from "../vault.ts";
import { passphraseOption } from "./identity-options.ts";
import { readNextPassphrase, readPassphrase, type Home } from "./home.ts";
import { readSecretFile, requireOneFromInput } from "./secret-input.ts";
import { UsageError, type Input, type Verb } from "./verb.ts";

const name = { name: "A name of 1 to 32 characters: a-z, 0-9, _ and -." };

/** The verbs of the vault. */
export const identityVerbs: readonly Verb[] = [
  {
    name: "identity create",
    summary: "Create an identity, seal it in the vault and print its words, only once.",
    notes: "The 12 words restore the identity in this and other wallets: write them down on paper.",
    parameters: name,
    options: passphraseOption,
    example: "identity create mine --passphrase-file ~/.svc-passphrase",
    async run(home, input) {
      const mnemonic = newMnemonic();
      const sealed = await seal(home, input, { kind: "mnemonic", mnemonic, index: 0 });
      return { value: { ...sealed, mnemonic }, isToldOnce: true };
    },
  },
  {
    name: "identity import",
    summary: "Import an existing identity into the vault.",
    notes: "Secrets are read from files, because others can see the arguments of a command.",
    parameters: name,
    options: {
      ...passphraseOption,
      "mnemonic-file": {
        value: "path",
        description: "File with the 12 to 24 words; - for standard input.",
      },
      index: { value: "number", description: "Which account of the words to import. Default: 0." },
      "private-key-file": {
        value: "path",
        description: "File with the private key, 0x and 64 hex digits; - for standard input.",
      },
    },
    example: "identity import mine --mnemonic-file words.txt",
    async run(home, input) {
      requireOneFromInput(input, ["mnemonic-file", "private-key-file", "passphrase-file"]);
      return { value: await seal(home, input, await readSecret(input)) };
    },
  },
  {
    name: "identity list",
    summary: "List the identities that --as accepts.",
    example: "identity list",
    async run({ storage, demo }) {
      const sealed = await listIdentities(storage);
      const names = new Set(sealed.map((each) => each.name));
      const known = [...(demo?.identities ?? [])].filter(([each]) => !names.has(each));
      const identities = [
        ...sealed.map(({ name: each, address }) => ({ name: each, address, from: "vault" })),
        ...known.map(([each, { address }]) => ({ name: each, address, from: "demo" })),
      ];
      return { value: { identities } };
    },
  },
  {
    name: "identity passphrase",
    summary: "Change the passphrase of an identity in the vault.",
    notes: "Earlier copies of the file and earlier backups still open with the old passphrase.",
    parameters: { name: "The identity's name in the vault." },
    options: {
      "passphrase-file": {
        ...passphraseOption["passphrase-file"],
        description:
          "File with the current passphrase; - for standard input. Default: WALLET_PASSPHRASE, else the terminal asks.",
      },
      "new-passphrase-file": {
        value: "path",
        description:
          "File with the new passphrase; - for standard input. Default: the terminal asks, twice.",
      },
    },
    example: "identity passphrase mine",
    run: async (home, input) => ({ value: await changeSeal(home, input) }),
  },
  {
    name: "identity remove",
    summary: "Remove an identity from the vault, permanently.",
    notes:
      "Only its words, its private key or a backup can bring it back. Its verified fields and history stay, but sealed: only the identity can open them.",
    parameters: { name: "The identity's name in the vault." },
    options: {
      yes: {
        description: "Confirm. Without this option the verb is refused and says what would happen.",
      },
    },
    example: "identity remove mine --yes",
    async run({ storage }, input) {
      const entry = await requireIdentity(storage, input.text("name"));
      const loss = await sayLoss(storage, entry);
      if (!input.flag("yes")) throw new WalletRefusal("not_accepted", `${loss}; repeat with --yes`);
      return { value: { ...(await removeIdentity(storage, entry.name)), status: "removed" } };
    },
  },
];

async function changeSeal(home: Home, input: Input): Promise<object> {
  requireOneFromInput(input, ["passphrase-file", "new-passphrase-file"]);
  const { name: identityName } = await requireIdentity(home.storage, input.text("name"));
  const prompt = { question: `Passphrase of ${identityName}: ` };
  const passphrase = await readPassphrase(home, input.optional("passphrase-file"), prompt);
  const file = input.optional("new-passphrase-file");
  const next = async (): Promise<string> =>
    readNextPassphrase(file, `New passphrase for ${identityName}: `);
  const changed = await changePassphrase(home, { name: identityName, passphrase, next });
  return { ...changed, status: "changed" };
}

/**
 * Says what is lost with the removal of an identity.
 *
 * @throws {WalletRefusal} invalid_request while a transaction that it signed is not fully answered: only this identity
 * can find out what became of it, or send it again in place of a second one
 */
async function sayLoss(storage: Home["storage"], entry: VaultEntry): Promise<string> {
  const { name: removed, address } = entry;
  const same = (await listIdentities(storage)).find(
    (each) => each.address === address && each.name !== removed,
  );
  if (same !== undefined)
    return `${removed} (${address}) will be removed, but the same identity stays as ${same.name}`;
  const signed = (await listKeysOf(storage, address, "transaction")).find(
    (key) => !key.endsWith("_doubt"),
  );
  if (signed !== undefined)
    throw new WalletRefusal(
      "invalid_request",
      `${removed} signed a transaction whose outcome is unknown: approve its link again, or, once you have made sure that the account paid nothing for it, remove ${signed}`,
    );
  const count = async (folder: "credential" | "history"): Promise<number> =>
    (await listKeysOf(storage, address, folder)).length;
  const kept = `its credentials (${await count("credential")}) and history (${await count("history")})`;
  return `${removed} (${address}) will be removed permanently: without its words, its private key or a backup, nobody can sign as it or open ${kept} any more`;
}

async function seal(home: Home, input: Input, secret: IdentitySecret) {
  const identityName = input.text("name");
  const prompt = { question: `New passphrase for ${identityName}: `, isNew: true } as const;
  const passphrase = await readPassphrase(home, input.optional("passphrase-file"), prompt);
  return sealIdentity(home, { name: identityName, secret, passphrase });
}

async function readSecret(input: Input): Promise<IdentitySecret> {
  const mnemonicFile = input.optional("mnemonic-file");
  const keyFile = input.optional("private-key-file");
  const index = input.optional("index") ?? "0";
  if (mnemonicFile !== undefined && keyFile === undefined) {
    if (!/^\d{1,10}$/.test(index)) throw new UsageError("--index must be a whole number");
    const mnemonic = await readSecretFile(mnemonicFile);
    return { kind: "mnemonic", mnemonic, index: Number(index) };
  }
  if (keyFile === undefined || mnemonicFile !== undefined || input.optional("index") !== undefined)
    throw new UsageError("give either --mnemonic-file (with --index) or --private-key-file");
  return { kind: "private-key", privateKey: (await readSecretFile(keyFile)).trim() as Hex };
}

import type { Hex } from "@svc/protocol";
import { newMnemonic, type IdentitySecret } from "../identity.ts";
import { listIdentities, sealIdentity } from "../vault.ts";
import { passphraseOption } from "./identity-options.ts";
import { readPassphrase, type Home } from "./home.ts";
import { readSecretFile } from "./secret-input.ts";
import { UsageError, type Input, type Verb } from "./verb.ts";

const name = { name: "1 to 32 of a-z, 0-9, _ and -." };

/** The verbs of the vault. */
export const identityVerbs: readonly Verb[] = [
  {
    name: "identity create",
    summary: "Makes an identity, seals it in the vault and prints its words once.",
    notes: "The 12 words restore the identity in this and other wallets: keep them on paper.",
    parameters: name,
    options: passphraseOption,
    example: "identity create mine --passphrase-file ~/.svc-passphrase",
    async run(home, input) {
      const mnemonic = newMnemonic();
      const sealed = await seal(home, input, { kind: "mnemonic", mnemonic, index: 0 });
      return { value: { ...sealed, mnemonic } };
    },
  },
  {
    name: "identity import",
    summary: "Seals an identity in the vault that exists already.",
    notes: "Secrets come from files, as what stands in a command line is seen by others.",
    parameters: name,
    options: {
      ...passphraseOption,
      "mnemonic-file": {
        value: "path",
        description: "File with 12 to 24 words; - for standard input.",
      },
      index: { value: "number", description: "Which account of the words; 0 unless given." },
      "private-key-file": {
        value: "path",
        description: "File with 0x and 64 hex digits; - for standard input.",
      },
    },
    example: "identity import mine --mnemonic-file words.txt",
    async run(home, input) {
      return { value: await seal(home, input, await readSecret(input)) };
    },
  },
  {
    name: "identity list",
    summary: "Lists the identities that --as can name.",
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
];

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
    if (!/^\d{1,10}$/.test(index)) throw new UsageError("--index is a whole number");
    const mnemonic = await readSecretFile(mnemonicFile);
    return { kind: "mnemonic", mnemonic, index: Number(index) };
  }
  if (keyFile === undefined || mnemonicFile !== undefined || input.optional("index") !== undefined)
    throw new UsageError("either --mnemonic-file (with --index) or --private-key-file");
  return { kind: "private-key", privateKey: (await readSecretFile(keyFile)).trim() as Hex };
}

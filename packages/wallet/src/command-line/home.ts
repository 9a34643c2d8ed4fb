import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { prepareForFewSignatures } from "@svc/protocol";
import { openIdentity, type IdentitySecret } from "../identity.ts";
import { WalletRefusal } from "../refusal.ts";
import type { StorageKey, WalletStorage } from "../storage.ts";
import { hasIdentity, unsealSecret } from "../vault.ts";
import { openWallet, type Wallet } from "../wallet.ts";
import { openClock, readDemoWorld, type DemoWorld } from "./demo-world.ts";
import type { Environment } from "./environment.ts";
import { fileStorage } from "./file-storage.ts";
import { askNewSecret, askSecret, readSecretFile } from "./secret-input.ts";

/** Where the command line stores and finds things. */
export interface Home {
  /** `DATA_DIR`. */
  readonly directory: string;
  readonly storage: WalletStorage;
  readonly demo: DemoWorld | null;
  readonly seededBrokers: readonly string[];
  /** Opens the vault if no file is named. */
  readonly passphrase: string | undefined;
  readonly random: (length: number) => Uint8Array;
  /** Writes a line to stderr; if the call is refused, the line becomes part of the refusal's line. */
  readonly tell: (line: string) => void;
  /** Writes a line to stderr at once. */
  readonly tellWait: (line: string) => void;
}

/** How an identity is chosen and unlocked. */
export interface Choice {
  /** `--as`. */
  readonly name: string | undefined;
  readonly passphraseFile: string | undefined;
}

/** How the terminal asks for a passphrase. */
interface Prompt {
  readonly question: string;
  /** True if the passphrase is a new one that is chosen now. */
  readonly isNew?: true;
}

/** Opens `wallet` in the data directory and the demo world beside it, if there is one. */
export function openHome(
  { dataDirectory, passphrase }: Environment,
  { tell, tellWait }: Pick<Home, "tell" | "tellWait">,
): Home {
  const demo = readDemoWorld(dataDirectory);
  return {
    directory: dataDirectory,
    storage: { ...fileStorage(join(dataDirectory, "wallet")), tellDamaged: tellOnce(tell) },
    demo,
    seededBrokers: demo === null ? [] : [demo.baseUrl],
    passphrase,
    random: (length) => new Uint8Array(randomBytes(length)),
    tell,
    tellWait,
  };
}

function tellOnce(tell: (line: string) => void): (key: StorageKey) => void {
  const told = new Set<StorageKey>();
  return (key) => {
    const way = key.startsWith("broker/")
      ? "broker add adds it again"
      : "restore brings it back from a backup";
    if (!told.has(key)) tell(`${key} cannot be read and is left out; ${way}`);
    told.add(key);
  };
}

/** The wallet of the chosen identity. @throws {WalletRefusal} */
export async function openHomeWallet(home: Home, choice: Choice): Promise<Wallet> {
  const { storage, demo, seededBrokers, random, tell, tellWait } = home;
  prepareForFewSignatures();
  const identity = await openIdentity((await findSecret(home, choice)).secret);
  const now = openClock(demo);
  return openWallet({ identity, storage, seededBrokers, random, fetch, now, tell, tellWait });
}

/**
 * The passphrase: from the file, else `WALLET_PASSPHRASE`, else asked on the terminal.
 *
 * @throws {WalletRefusal} wrong_passphrase; invalid_input if a new one was not typed the same twice
 */
export async function readPassphrase(
  home: Home,
  file: string | undefined,
  prompt: Prompt,
): Promise<string> {
  const passphrase = await findPassphrase(home, file, prompt);
  if (passphrase !== null) return passphrase;
  throw new WalletRefusal(
    "wrong_passphrase",
    "the vault needs a passphrase: give --passphrase-file or WALLET_PASSPHRASE, or run this in a terminal",
  );
}

/**
 * A passphrase to replace the present one, from the file, else asked on the terminal; `WALLET_PASSPHRASE` holds the
 * present one.
 *
 * @throws {WalletRefusal} invalid_input
 */
export async function readNextPassphrase(
  file: string | undefined,
  question: string,
): Promise<string> {
  const passphrase = file === undefined ? await askNewSecret(question) : await readSecretFile(file);
  if (passphrase !== null) return passphrase;
  throw new WalletRefusal(
    "invalid_input",
    "the new passphrase is missing: give --new-passphrase-file, or run this in a terminal",
  );
}

/** As `readPassphrase`; null if there is none, and no terminal to ask on. */
export async function findPassphrase(
  home: Home,
  file: string | undefined,
  { question, isNew }: Prompt,
): Promise<string | null> {
  if (file !== undefined) return readSecretFile(file);
  if (home.passphrase !== undefined) return home.passphrase;
  return isNew === true ? askNewSecret(question) : askSecret(question);
}

/** The secret of the chosen identity, and the passphrase if the vault needed one. @throws {WalletRefusal} */
export async function findSecret(
  home: Home,
  choice: Choice,
): Promise<{ name: string; secret: IdentitySecret; passphrase: string | null }> {
  const name = choice.name ?? (await onlyName(home));
  if (await hasIdentity(home.storage, name)) {
    const prompt = { question: `Passphrase of ${name}: ` };
    const passphrase = await readPassphrase(home, choice.passphraseFile, prompt);
    return { name, passphrase, secret: await unsealSecret(home.storage, { name, passphrase }) };
  }
  const known = home.demo?.identities.get(name);
  if (known === undefined)
    throw new WalletRefusal(
      "not_found",
      `there is no identity ${name} in ${home.directory}; see wallet identity list`,
    );
  return { name, passphrase: null, secret: { kind: "private-key", privateKey: known.privateKey } };
}

/** Without `--as`, the only identity of a vault is used; a demo world has several. */
async function onlyName({ storage, demo }: Home): Promise<string> {
  // A file that cannot be read counts as well, since it may be that of the identity that was meant.
  const [only, second] = await storage.list("identity");
  if (only !== undefined && second === undefined && demo === null)
    return only.slice("identity/".length);
  throw new WalletRefusal(
    "invalid_input",
    "no identity is given: add --as <name>; see wallet identity list",
  );
}

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sameSalt } from "../test/same-salt.ts";
import { refuses } from "../test/test-wallet.ts";
import { fileStorage } from "./command-line/file-storage.ts";
import {
  changePassphrase,
  hasIdentity,
  listIdentities,
  memoryStorage,
  newMnemonic,
  openIdentity,
  removeIdentity,
  sealIdentity,
  unsealIdentity,
  type IdentitySecret,
  type RefusalCode,
  type WalletStorage,
} from "./index.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-vault-"));
using cleanup = new DisposableStack();
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));

const storage = fileStorage(join(directory, "wallet"));
const vault = { storage, random: sameSalt };
const passphrase = "correct horse battery";

await test("a mnemonic gives the accounts that other Ethereum wallets give", async () => {
  const mnemonic = "test test test test test test test test test test test junk";
  const first = await openIdentity({ kind: "mnemonic", mnemonic, index: 0 });
  const second = await openIdentity({
    kind: "mnemonic",
    mnemonic: ` ${mnemonic.toUpperCase()}\n`,
    index: 1,
  });
  assert.equal(first.address, "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
  assert.equal(second.address, "0x70997970c51812dc3a010c7d01b50e0d17dc79c8");
});

await test("words, keys and indexes of the wrong form are refused", async () => {
  const wrong: IdentitySecret[] = [
    { kind: "mnemonic", mnemonic: `${"test ".repeat(11)}test`, index: 0 },
    { kind: "mnemonic", mnemonic: newMnemonic(), index: -1 },
    { kind: "mnemonic", mnemonic: newMnemonic(), index: 2 ** 31 },
    { kind: "private-key", privateKey: "0x1234" },
    { kind: "private-key", privateKey: `0x${"00".repeat(32)}` },
    { kind: "private-key", privateKey: `0x${"ff".repeat(32)}` },
  ];
  for (const secret of wrong) await refuses(openIdentity(secret), "invalid_input");
});

await test("a sealed identity comes back by its passphrase alone, and no file tells its secret", async () => {
  // Words that the file has for nothing else, as it has "name" and "salt".
  const mnemonic = "legal winner thank year wave sausage worth useful legal winner thank yellow";
  const entry = await sealIdentity(vault, {
    name: "mine",
    secret: { kind: "mnemonic", mnemonic, index: 0 },
    passphrase,
  });
  assert.deepEqual(await listIdentities(storage), [entry]);
  assert.equal(await hasIdentity(storage, "mine"), true);
  assert.equal(await hasIdentity(storage, "../mine"), false);
  const identity = await unsealIdentity(storage, { name: "mine", passphrase });
  assert.equal(identity.address, entry.address);
  await refuses(
    unsealIdentity(storage, { name: "mine", passphrase: "another horse battery" }),
    "wrong_passphrase",
  );
  await refuses(unsealIdentity(storage, { name: "yours", passphrase }), "not_found");
  const text = (await storage.get("identity/mine")) ?? "";
  for (const word of mnemonic.split(" ")) assert.equal(text.includes(word), false, word);
});

await test("a changed vault file does not open", async () => {
  const text = (await storage.get("identity/mine")) ?? "";
  const file = JSON.parse(text) as Record<string, unknown>;
  const changes: [object, RefusalCode][] = [
    [{ address: `0x${"11".repeat(20)}` }, "wrong_passphrase"],
    [{ salt: "A".repeat(22) }, "wrong_passphrase"],
    [{ name: "other" }, "damaged_state"],
    [{ version: 2 }, "damaged_state"],
  ];
  for (const [change, code] of changes) {
    await storage.put("identity/mine", JSON.stringify({ ...file, ...change }));
    await refuses(unsealIdentity(storage, { name: "mine", passphrase }), code);
  }
  await storage.put("identity/mine", text.slice(0, 40));
  await refuses(unsealIdentity(storage, { name: "mine", passphrase }), "damaged_state");
  await storage.put("identity/mine", text);
});

await test("a vault file opens under its own name alone", async () => {
  const text = (await storage.get("identity/mine")) ?? "";
  await storage.put("identity/theirs", text.replace('"name":"mine"', '"name":"theirs"'));
  await refuses(unsealIdentity(storage, { name: "theirs", passphrase }), "wrong_passphrase");
  await storage.remove("identity/theirs");
});

await test("a name is taken once, and short passphrases and odd names are refused", async () => {
  const secret: IdentitySecret = { kind: "private-key", privateKey: `0x${"07".repeat(32)}` };
  const seal = async (name: string, phrase = passphrase): Promise<unknown> =>
    sealIdentity(vault, { name, secret, passphrase: phrase });
  await refuses(seal("mine"), "invalid_input");
  await refuses(seal("short", "1234567"), "invalid_input");
  for (const name of ["", "A", "a/b", "..", "a".repeat(33)])
    await refuses(seal(name), "invalid_input");
  const raced = await Promise.allSettled([seal("raced"), seal("raced")]);
  assert.deepEqual(raced.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
});

await test("files are for their owner alone, whole, and leave no drafts behind", async () => {
  const added = await Promise.all(
    [1, 2, 3, 4].map(async (each) => storage.add("claim/a", `text ${each}`)),
  );
  assert.equal(new Set(added).size, 1);
  await storage.put("claim/b", "text");
  assert.deepEqual((await storage.list("claim")).toSorted(), ["claim/a", "claim/b"]);
  const root = join(directory, "wallet");
  for (const path of [root, join(root, "claim")]) assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(statSync(join(root, "claim", "a.json")).mode & 0o777, 0o600);
  await storage.remove("claim/a");
  await storage.remove("claim/a");
  assert.deepEqual(readdirSync(join(root, "claim")), ["b.json"]);
  for (const key of ["claim/../../x", "claim/a/../../x", "claim/../claim/a"] as const)
    await assert.rejects(storage.put(key, "text"), TypeError);
});

await test("a file that may hold the keys of another identity is never written over", async () => {
  const kept = memoryStorage();
  const secret = { kind: "mnemonic", mnemonic: newMnemonic(), index: 0 } as const;
  const { address } = await openIdentity(secret);
  const later = { version: 2, name: "kept", address, sealed: "AA" };
  const cut = `{"version":1,"name":"kept","address":"0x${"ab".repeat(20)}","salt":"A`;
  for (const text of [JSON.stringify(later), cut]) {
    await kept.put("identity/kept", text);
    const sealing = sealIdentity(
      { ...vault, storage: kept },
      { name: "kept", secret, passphrase, mends: true },
    );
    await refuses(sealing, "invalid_input");
    assert.equal(await kept.get("identity/kept"), text);
  }
});

await test("a passphrase is changed of what was opened alone: what came into its place meanwhile stays", async () => {
  const kept = memoryStorage();
  const own = { ...vault, storage: kept };
  const seal = async (): Promise<unknown> => {
    const secret = { kind: "mnemonic", mnemonic: newMnemonic(), index: 0 } as const;
    return sealIdentity(own, { name: "kept", secret, passphrase });
  };
  await seal();
  const next = async (): Promise<string> => {
    await removeIdentity(kept, "kept");
    await seal();
    return "another horse battery";
  };
  await refuses(changePassphrase(own, { name: "kept", passphrase, next }), "invalid_input");
  await unsealIdentity(kept, { name: "kept", passphrase });
});

await test("an identity that another call wrote anew while it was removed is not said to be gone", async () => {
  const kept = memoryStorage();
  const secret = { kind: "mnemonic", mnemonic: newMnemonic(), index: 0 } as const;
  await sealIdentity({ ...vault, storage: kept }, { name: "kept", secret, passphrase });
  const text = (await kept.get("identity/kept")) ?? "";
  const remove: WalletStorage["remove"] = async (key) => {
    await kept.remove(key);
    await kept.put(key, text);
  };
  await refuses(removeIdentity({ ...kept, remove }, "kept"), "invalid_input", /still there/);
});

await test("a passphrase is changed to no shorter one than a new one may be", async () => {
  const kept = memoryStorage();
  const own = { ...vault, storage: kept };
  const secret = { kind: "mnemonic", mnemonic: newMnemonic(), index: 0 } as const;
  await sealIdentity(own, { name: "kept", secret, passphrase });
  const changing = changePassphrase(own, {
    name: "kept",
    passphrase,
    next: async () => "1234567",
  });
  await refuses(changing, "invalid_input");
  await unsealIdentity(kept, { name: "kept", passphrase });
});

await test("a passphrase opens however a keyboard composes its letters", async () => {
  const kept = memoryStorage();
  const secret = { kind: "mnemonic", mnemonic: newMnemonic(), index: 0 } as const;
  const [composed, apart] = ["Zürich-école", "Zu\u0308rich-e\u0301cole"];
  const own = { ...vault, storage: kept };
  const { address } = await sealIdentity(own, { name: "kept", secret, passphrase: composed });
  const opened = await unsealIdentity(kept, { name: "kept", passphrase: apart });
  assert.equal(opened.address, address);
});

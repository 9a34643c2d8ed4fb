import assert from "node:assert/strict";
import { test } from "node:test";
import { refuses } from "../test/test-wallet.ts";
import { restoreBackup, writeBackup } from "./backup.ts";
import { openIdentity } from "./identity.ts";
import { getDroppingDamaged, getRecord, listDroppingDamaged } from "./records.ts";
import { memoryStorage } from "./storage.ts";
import { listIdentities, requireIdentity, unsealSecret } from "./vault.ts";

// Files of an earlier version. Their owners have no other copy of the key: never generate these anew.
const secret = { kind: "mnemonic", mnemonic: `${"test ".repeat(11)}junk`, index: 1 } as const;
const passphrase = "gr\u00fcezi miteinand";
const address = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const file = {
  version: 1,
  name: "mine",
  address,
  salt: "DWjlUD24FaBtCEXwnVh1QA",
  nonce: "zailkP341eAtSAUw",
  sealed:
    "s2B61jz4IjUE2jU-pEMEdbXctGbLbYTUB8PyzzB16eLEwLmnENzMBPi3hcLUQVeW7jqfGpgce6y_WM6jmlzO1g6xj7HdTGpnyTwLkSPC1IzrLw9J3wwWntvoQopfYEtj0JKQoEvUZWfApMdWq5mVP6RIV0ChIg",
};
const backup =
  "svc-wallet-backup-v1.XZg1gI3oZdC9OJUg7YjFcA.Hdj1wE0oJRB9eFVgknTcc6I4JnqCVox6xfNkLuM7Bi4ouF4lj4sqG_xX-GtK99bL_mn3pYvAuKnjsxc9S0YtdPQYCUSlpMjQdU9JZT0msh-dCd3lTECp29poZ4FZKWBpT4EhhL1WVjihO-oqvto-Vbme1mgPUFD9ssCxa43lJ2W0ThhekP8tvtZbhsg7F9de7tYhII7wrmwyE8kY5P-svH9w3BJG9eK1kiA-AWGc5MXgjWeUn-b4ozA";
const record = "rciFsN0YtQANaOVQaGvk-O0OQRP_WqQyeaBpl4wq40J3gohR8S6XeVJ0Ayw4pA";

const random = (): never => assert.fail("what is opened needs nothing new");

test("a vault file that was sealed by an earlier version opens", async () => {
  const storage = memoryStorage();
  await storage.put("identity/mine", JSON.stringify(file));
  assert.deepEqual(await unsealSecret(storage, { name: "mine", passphrase }), secret);
});

test("a vault file of another version, or with a member of another type, is damaged and opens nothing", async () => {
  const storage = memoryStorage();
  for (const member of Object.keys(file)) {
    await storage.put("identity/mine", JSON.stringify({ ...file, [member]: 2 }));
    await refuses(requireIdentity(storage, "mine"), "damaged_state");
    await refuses(unsealSecret(storage, { name: "mine", passphrase }), "damaged_state");
  }
});

test("a backup that was written by an earlier version is restored", async () => {
  const parts = { storage: memoryStorage(), random };
  const restored = await restoreBackup(parts, { text: backup, passphrase });
  assert.deepEqual(restored, { name: "mine", address, secret, credentials: 0 });
});

test("a record that was sealed by an earlier version is read", async () => {
  const storage = memoryStorage();
  const key = "vote/70997970c51812dc_one" as const;
  await storage.put(key, record);
  const identity = await openIdentity(secret);
  assert.deepEqual(await getRecord({ identity, storage, random }, key), { vote: "approve" });
});

test("a disk that fails is no damage: nothing is removed, and no backup is written without what it holds", async () => {
  const storage = memoryStorage();
  const key = "history/70997970c51812dc_one" as const;
  await storage.put(key, record);
  const identity = await openIdentity(secret);
  const failing = {
    ...storage,
    get: async () => Promise.reject(new Error("EIO: i/o error, read")),
  };
  const ctx = { identity, storage: failing, random };
  await assert.rejects(getDroppingDamaged(ctx, key), /^Error: EIO/);
  await assert.rejects(listDroppingDamaged(ctx, "history"), /^Error: EIO/);
  await storage.put("identity/mine", JSON.stringify(file));
  await assert.rejects(listIdentities(failing), /^Error: EIO/);
  const given = { name: "mine", secret, passphrase };
  await assert.rejects(writeBackup(ctx, given), /^Error: EIO/);
  assert.equal(await storage.get(key), record);
});

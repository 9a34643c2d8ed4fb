// The operator changes the account, one process after the other: two accounts work on one queue.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfPrivateKey } from "@svc/protocol";
import { signDue } from "../../service/src/chain/sign.ts";
import { startAnvil } from "../anvil.ts";
import { handOverRegistry, openInstallation } from "../chain-processes.ts";
import { rowsOf, settle, settledOn } from "../outbox-looks.ts";

test("a transaction that the former account is just signing is not signed by the next account too", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using former = await installation.openProcess();
  const key = "42".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  await anvil.rpc("anvil_setBalance", [heir, `0x${(10n ** 18n).toString(16)}`]);
  await handOverRegistry(anvil, former.chain, heir);
  await using next = await installation.openProcess({ SIGNER_KEY: key });
  await anvil.setAutomine(false);
  await former.queue("a");
  await former.queue("b");
  const { signer } = former.chain;
  let byNext = 0;
  const sign: typeof signer.sign = async (transaction) => {
    byNext += (await signDue(next.ctx)).count;
    return signer.sign(transaction);
  };
  const byFormer = await signDue({
    ...former.ctx,
    chain: { ...former.chain, signer: { ...signer, sign } },
  });
  assert.deepEqual([byFormer.count, byNext], [2, 0]);
  await next.queue("c");
  await settle(anvil, installation, [next]);
  const rows = await rowsOf(next);
  assert.ok(rows.every(({ status, forms }) => status === "succeeded" && forms === 1));
  assert.equal(await settledOn(anvil, next), 3);
});

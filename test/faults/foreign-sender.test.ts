// Somebody else who sends from the operator's account, such as a process on another copy of the database.
import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { startAnvil } from "../anvil.ts";
import { fundedKey, openInstallation } from "../chain-processes.ts";
import { alarmsOf, contractsTotal, settle } from "../outbox-looks.ts";

test("a foreign transaction from the account raises an alarm even if it takes no nonce of ours, but not one from before the start", async () => {
  await using anvil = await startAnvil();
  const account = privateKeyToAccount(`0x${fundedKey}`);
  const sendElsewhere = async (nonce: number): Promise<void> => {
    const foreign = await account.signTransaction({
      type: "eip1559",
      chainId: anvil.chainId,
      nonce,
      to: account.address,
      gas: 21_000n,
      maxFeePerGas: 10n ** 11n,
      maxPriorityFeePerGas: 10n ** 10n,
    });
    await anvil.rpc("eth_sendRawTransaction", [foreign]);
  };
  await sendElsewhere(0);
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  const raised = async (): Promise<number> => alarmsOf(process, "nonce_taken");
  await process.queue("a");
  await settle(anvil, installation, [process]);
  assert.equal(await raised(), 0);
  await sendElsewhere(contractsTotal + 2);
  for (const subject of ["b", "c"]) {
    await process.queue(subject);
    await settle(anvil, installation, [process]);
    assert.equal(await raised(), 1);
  }
  assert.deepEqual(process.done.map(({ subjectId }) => subjectId).toSorted(), ["a", "b", "c"]);
});

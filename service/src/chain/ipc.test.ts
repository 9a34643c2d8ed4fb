import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { openIpc, type Ipc } from "./ipc.ts";

/** A node that answers each line. */
async function withNode(use: (ipc: Ipc) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "svc-ipc-"));
  const server = createServer((socket) => {
    createInterface({ input: socket }).on("line", (line) => {
      const calls = [JSON.parse(line) as { id: number } | { id: number }[]].flat();
      const ids = calls.map(({ id }) => id);
      void answer(socket, ids);
    });
  });
  server.listen(join(directory, "node.ipc"));
  await once(server, "listening");
  const ipc = await openIpc(join(directory, "node.ipc"));
  try {
    await use(ipc);
  } finally {
    ipc.close();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

const zeros = "0".repeat(2 ** 20);

async function write(socket: Socket, text: string): Promise<void> {
  if (!socket.write(text)) await once(socket, "drain");
}

/** The first call and every batch are answered at length. */
async function answer(socket: Socket, [id = 0, ...others]: number[]): Promise<void> {
  const isBatch = others.length > 0;
  const mebibytes = id === 1 || isBatch ? 257 : 0;
  await write(socket, isBatch ? "[{" : "{");
  // The reader gets the beginning in a chunk of its own.
  await setImmediate();
  await write(socket, `"jsonrpc":"2.0","id":${id},"result":"`);
  for (let mebibyte = 0; mebibyte < mebibytes; mebibyte++) await write(socket, zeros);
  await write(socket, `"}${isBatch ? "]" : ""}\n`);
}

test("an answer that is too long is refused to whoever asked, and the node goes on answering", async () => {
  await withNode(async (ipc) => {
    await assert.rejects(ipc.request("eth_getLogs", []), { name: "RpcError", code: -32_005 });
    assert.equal(await ipc.request("eth_chainId", []), "");
    const batch = [["eth_getLogs", []] as const, ["eth_getLogs", []] as const];
    await assert.rejects(ipc.batch(batch), { name: "RpcError", code: -32_005 });
    assert.equal(await ipc.request("eth_chainId", []), "");
  });
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Queryable } from "../platform/database/db.ts";
import { OwnerConnection } from "./embedded-owner-connection.ts";
import { NodeAway } from "./node.ts";

/** Nodes that accept connections, and how many of them each has. */
async function openNodes() {
  const stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "svc-owner-"));
  stack.defer(async () => rm(directory, { recursive: true }));
  const open = new Map<string, number>();
  return {
    open,
    async listen(name: string): Promise<string> {
      const path = join(directory, name);
      const count = (by: number): void => void open.set(path, (open.get(path) ?? 0) + by);
      const sockets = new Set<Socket>();
      const server = createServer((socket) => {
        sockets.add(socket);
        count(1);
        socket.on("close", () => count(-1)).resume();
      }).listen(path);
      await once(server, "listening");
      stack.defer(() => {
        for (const socket of sockets) socket.destroy();
        server.close();
      });
      return path;
    },
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}

const turn = async (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test("a connection that is opened while the node is replaced leads to the new one, and there is only one", async () => {
  await using nodes = await openNodes();
  const { open } = nodes;
  const [before, after] = [await nodes.listen("before"), await nodes.listen("after")];
  let [path, isFirst] = [before, true];
  const query = async (): Promise<unknown[]> => {
    const rows = [{ ipc_path: path }];
    if (isFirst) {
      [path, isFirst] = [after, false];
      connection.renew();
    }
    return rows;
  };
  using connection = new OwnerConnection({ query } as unknown as Queryable);
  const [one, two] = await Promise.all([connection.ipc(), connection.ipc()]);
  assert.equal(connection.leadsTo(after), true);
  assert.equal(one, two);
  while (open.get(before) !== 0 || open.get(after) !== 1) await turn();
});

test("a call during the end of the process is refused, and leaves no connection behind", async () => {
  await using nodes = await openNodes();
  const path = await nodes.listen("node");
  const query = async (): Promise<unknown[]> => {
    connection[Symbol.dispose]();
    return [{ ipc_path: path }];
  };
  using connection = new OwnerConnection({ query } as unknown as Queryable);
  await assert.rejects(connection.ipc(), NodeAway);
  while (nodes.open.get(path) !== 0) await turn();
  await assert.rejects(connection.ipc(), NodeAway);
});

// Two servers, one chain: the one that runs the node is killed, and nothing that was acknowledged is lost or changed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keccak256 } from "viem";
import { openChain } from "../../service/src/chain/index.ts";
import { openEmbeddedChain } from "../../service/src/chain/embedded-chain.ts";
import { openLockSession } from "../../service/src/chain/embedded-lock-store.ts";
import { announcePath } from "../../service/src/chain/embedded-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openTestDatabase } from "../../service/src/platform/database/test-database.ts";
import { nodePid, openContextOf, openPurse } from "../embedded-chain.ts";
import { until } from "../patience.ts";
import { type ServerProcess, startServer } from "../world.ts";
import { openBeside } from "../beside-each-other.ts";

const { test, run } = openBeside("the chain outlives its owner");

/** One call through a server's relay; null if nobody answers. */
async function ask(server: ServerProcess, method: string, params: unknown[]): Promise<unknown> {
  const answer = await fetch(`${server.url}/w/chain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  }).catch(() => null);
  if (answer?.status !== 200) return null;
  return ((await answer.json()) as { result?: unknown }).result ?? null;
}

const settingsOf = (url: string): NodeJS.ProcessEnv => ({
  PROFILE: "dev",
  METRICS_PORT: "0",
  DATABASE_URL: url,
  MASTER_KEY: "11".repeat(32),
  LOG_LEVEL: "silent",
  CHAIN: "on",
});

test("a wallet's transactions survive kill -9 of the owner under load, block for block", async (t) => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await using stack = new AsyncDisposableStack();
  const start = async (): Promise<ServerProcess> =>
    stack.use(await startServer(settingsOf(database.url)));
  let other = await start();
  const sign = await openPurse(ctx);
  const blocks = new Map<string, unknown>();
  let nonce = 0;
  // The second owner has taken the chain over from the first.
  for (let round = 0; round < 2; round++) {
    const owner = other;
    other = await start();
    const killed = round * 12 + 5;
    for (; nonce < (round + 1) * 12; nonce++) {
      const raw = sign(nonce);
      const dying = nonce === killed ? owner.kill() : null;
      // A caller without an answer sends the same bytes again; they count once.
      const hash = await until(`nonce ${nonce}`, async () =>
        ask(other, "eth_sendRawTransaction", [raw]),
      );
      assert.equal(hash, keccak256(raw));
      await dying;
      const receipt = (await until("the receipt", async () =>
        ask(other, "eth_getTransactionReceipt", [hash]),
      )) as { blockHash: string };
      blocks.set(keccak256(raw), receipt.blockHash);
    }
  }
  for (const [hash, blockHash] of blocks) {
    const receipt = (await until("the receipt", async () =>
      ask(other, "eth_getTransactionReceipt", [hash]),
    )) as { blockHash: string; status: string };
    assert.deepEqual([receipt.blockHash, receipt.status], [blockHash, "0x1"]);
  }
  const [journal] = await ctx.db.query<{ n: number; nonces: number }>(sql`
    select count(*) as n, max(nonce) + 1 as nonces from embedded_transaction
    where signer = (select faucet_address from embedded_chain)`);
  assert.deepEqual(journal, { n: 24, nonces: 24 });
  await t.test(
    "a server whose chain comes back as another ends instead of going on with it",
    async () => {
      // A block that is being mined has no hash yet, and would get its own after this.
      await ctx.db.query(sql`update embedded_block set hash = ${`0x${"ab".repeat(32)}`}
        where number = (select max(number) from embedded_block where hash is not null)`);
      process.kill(await nodePid({ ctx }), "SIGKILL");
      await until("the server's end", async () => {
        try {
          process.kill(other.pid, 0);
          return null;
        } catch {
          return true;
        }
      });
      await assert.rejects(openEmbeddedChain(ctx), /came back with another block/);
    },
  );
});

test("a process that starts while the owner of the chain dies takes the chain over", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await (await openEmbeddedChain(ctx))[Symbol.asyncDispose]();
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "svc-test-"));
  stack.defer(async () => rm(directory, { recursive: true, force: true }));
  await using owner = await openLockSession(ctx.db.connectionString);
  assert.ok(await owner.tryLock());
  const asked: string[] = [];
  // The owner's node tells its chain id, and the owner dies at the next question.
  const answer = (socket: Socket, line: string): void => {
    const { id, method } = JSON.parse(line) as { id: number; method: string };
    asked.push(method);
    if (method === "eth_chainId") socket.write(`${JSON.stringify({ id, result: "0x1" })}\n`);
    else void owner[Symbol.asyncDispose]().then(() => socket.destroy());
  };
  const dying = createServer((socket) =>
    socket.on("data", (data) => {
      for (const line of data.toString().trim().split("\n")) answer(socket, line);
    }),
  ).listen(join(directory, "ipc"));
  stack.defer(() => void dying.close());
  await once(dying, "listening");
  await announcePath(owner, join(directory, "ipc"));
  await using chain = await openChain(ctx);
  assert.deepEqual(new Set(asked), new Set(["eth_chainId", "eth_getCode"]));
  const code = await chain.node.request("eth_getCode", [chain.contracts.registry, "latest"]);
  assert.match(String(code), /^0x[0-9a-f]{100,}$/);
});

test("a process whose clock is wrong mines by the database's, so that no deadline on the chain passes early", async () => {
  await using database = await openTestDatabase();
  const ahead = "--import=data:text/javascript,const%20now=Date.now;Date.now=()=>now()+864e5";
  await using wrong = await startServer({ ...settingsOf(database.url), NODE_OPTIONS: ahead });
  await using ctx = await openContextOf(database.url);
  const sign = await openPurse(ctx);
  const hash = await until("the transaction is taken", async () =>
    ask(wrong, "eth_sendRawTransaction", [sign(0)]),
  );
  await until("the transaction is mined", async () =>
    ask(wrong, "eth_getTransactionReceipt", [hash]),
  );
  assert.equal((await fetch(`${wrong.url}/health/ready`)).status, 503);
  for (const number of ["0x0", "latest"]) {
    const block = await ask(wrong, "eth_getBlockByNumber", [number, false]);
    const { timestamp } = block as { timestamp: string };
    assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 60, `${number} at ${timestamp}`);
  }
});

run(2);

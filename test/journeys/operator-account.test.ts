// The operator changes its account: what the old one could do, only the new one can.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { credentialRegistry } from "@svc/contracts";
import { type Address, addressOfPrivateKey } from "@svc/protocol";
import { padHex } from "viem";
import { credentialFinalHandlers, sendToRegistry } from "../../service/src/credentials/batches.ts";
import { revokeCredential } from "../../service/src/credentials/ending.ts";
import { issueCredential } from "../../service/src/credentials/issue.ts";
import {
  createIssuer,
  ensureBuiltInIssuers,
  getBuiltInIssuer,
  getIssuer,
} from "../../service/src/credentials/issuers.ts";
import { chainJobs } from "../../service/src/chain/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { startAnvil } from "../anvil.ts";
import { readerOf } from "../chain-reader.ts";
import { handOverRegistry, openInstallation, type SettlingProcess } from "../chain-processes.ts";

type Context = SettlingProcess["ctx"];

await using anvil = await startAnvil();
await using installation = await openInstallation(anvil, { CONFIRMATIONS: "1" });

const roundsMax = 60;

/** Runs the jobs and mines, round by round, until it is done; a run that came too early is repeated. */
async function settle({ ctx }: SettlingProcess, isDone: () => Promise<boolean>): Promise<void> {
  const [job] = chainJobs(ctx, credentialFinalHandlers(ctx));
  for (let round = 0; round < roundsMax && !(await isDone()); round += 1) {
    await sendToRegistry(ctx);
    await job?.run(AbortSignal.any([]));
    await anvil.mine();
    installation.advance(4);
  }
}

/** How many transactions of each kind the account has sent, in each status. */
const sentBy = async ({ db }: Context, account: Address) =>
  db.query<{ kind: string; status: string; count: number }>(sql`
    select kind, status, count(*)::int from chain_transaction where signer = ${account} group by 1, 2 order by 1, 2`);

async function issue(ctx: Context, data: string): Promise<string> {
  const issuer = await getBuiltInIssuer(ctx, "email", "live");
  const user: Address = `0x${Buffer.from(data).toString("hex").padStart(40, "0").slice(-40)}`;
  const fields = [{ field: "EMAIL", data }];
  const expiresAt = ctx.clock.now() + 300 * 86_400;
  return (await issueCredential(ctx, issuer, { user, document: "CONTACT", fields, expiresAt })).id;
}

async function isAttested({ db }: Context, id: string): Promise<boolean> {
  const rows = await db.query(sql`
    select from credential where id = ${id} and attested_at is not null`);
  return rows.length === 1;
}

await test("issuers are attested and revoked in the name of by the operator's new account, and by the former one no more", async () => {
  const key = "22".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  await anvil.rpc("anvil_setBalance", [heir, "0x14d1120d7b160000"]);
  let [first, former]: [string, Address] = ["", "0x"];
  {
    await using process = await installation.openProcess();
    former = process.chain.operator;
    await ensureBuiltInIssuers(process.ctx);
    first = await issue(process.ctx, "a@example.com");
    await settle(process, async () => isAttested(process.ctx, first));
    assert.ok(await isAttested(process.ctx, first));
    await handOverRegistry(anvil, process.chain, heir);
  }
  installation.advance(86_500);
  await using process = await installation.openProcess({ SIGNER_KEY: key });
  const { ctx } = process;
  const second = await issue(ctx, "b@example.com");
  const issuer = await getBuiltInIssuer(ctx, "email", "live");
  await revokeCredential({ ...ctx, onInvalidated: async () => undefined }, issuer, first);
  const issuers = await ctx.db.query(sql`select from issuer`);
  const expected = [
    { kind: "credential.attest", status: "succeeded", count: 1 },
    { kind: "credential.revoke", status: "succeeded", count: 1 },
    { kind: "registry.role", status: "succeeded", count: issuers.length },
    { kind: "registry.role-end", status: "succeeded", count: issuers.length },
  ];
  await settle(process, async () => isDeepStrictEqual(await sentBy(ctx, heir), expected));
  assert.deepEqual(await sentBy(ctx, heir), expected);
  assert.ok(await isAttested(ctx, second));
  assert.notEqual(former, heir);
  const owner = await ctx.db.query(sql`select distinct role_account as account from issuer`);
  assert.deepEqual(owner, [{ account: heir }]);
});

await test("the former account gets no role that its process asked for while both run", async () => {
  const key = "33".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  await anvil.rpc("anvil_setBalance", [heir, "0x14d1120d7b160000"]);
  await using former = await installation.openProcess({ SIGNER_KEY: "22".repeat(32) });
  await handOverRegistry(anvil, former.chain, heir);
  installation.advance(86_500);
  await using next = await installation.openProcess({ SIGNER_KEY: key });
  const { ctx } = next;
  const issuer = await createIssuer(ctx, { name: "Example Ident AG", environment: "live" }, "test");
  await sendToRegistry(former.ctx);
  const [job] = chainJobs(former.ctx, credentialFinalHandlers(former.ctx));
  await job?.run(AbortSignal.any([]));
  await settle(next, async () => {
    const { roleGrantedAt } = await getIssuer(ctx, issuer.id);
    const waiting = await ctx.db.query(sql`
      select from chain_transaction where status in ('queued', 'sent')`);
    return roleGrantedAt !== null && waiting.length === 0;
  });
  assert.equal(await hasRole(next, issuer.address, heir), true);
  assert.equal(await hasRole(next, issuer.address, former.chain.operator), false);
});

await test("a role is ended also where the former account's process sent the end of it, in vain", async () => {
  const key = "44".repeat(32);
  const heir = addressOfPrivateKey(Buffer.from(key, "hex"));
  await anvil.rpc("anvil_setBalance", [heir, "0x14d1120d7b160000"]);
  await using former = await installation.openProcess({ SIGNER_KEY: "33".repeat(32) });
  const { operator } = former.chain;
  const { ctx } = former;
  const issuer = await createIssuer(ctx, { name: "Example Ident AG", environment: "live" }, "test");
  const isGranted = async (): Promise<boolean> =>
    (await getIssuer(ctx, issuer.id)).roleGrantedAt !== null;
  await settle(former, isGranted);
  assert.equal(await hasRole(former, issuer.address, operator), true);
  await handOverRegistry(anvil, former.chain, heir);
  installation.advance(86_500);
  await using next = await installation.openProcess({ SIGNER_KEY: key });
  await sendToRegistry(next.ctx);
  const isRefused = async (): Promise<boolean> => {
    const refused = await ctx.db.query(sql`
      select from chain_transaction where kind = 'registry.role-end' and status = 'reverted'`);
    return refused.length > 0;
  };
  await settle(former, isRefused);
  assert.ok(await isRefused());
  await settle(next, async () => isGranted());
  assert.equal(await hasRole(next, issuer.address, heir), true);
  assert.equal(await hasRole(next, issuer.address, operator), false);
});

/** Whether the account may write in the name of the issuer. */
async function hasRole({ chain }: SettlingProcess, issuer: Address, account: Address) {
  return readerOf(chain).readContract({
    abi: credentialRegistry.abi,
    address: chain.contracts.registry,
    functionName: "hasRole",
    args: [padHex(issuer, { size: 32 }), account],
  });
}

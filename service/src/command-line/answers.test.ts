// What verbs answer to what names nothing, and how people see it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { runCommandLine } from "./index.ts";
import { forPeople } from "./print.ts";

await using database = await openTestDatabase();
const environment = { DATABASE_URL: database.url, PROFILE: "dev", MASTER_KEY: "11".repeat(32) };

async function call(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const written = { out: "", err: "" };
  const status = await runCommandLine(args, {
    out: (part) => (written.out += part),
    err: (part) => (written.err += part),
    environment: { ...environment, ...more },
  });
  return { status, ...written };
}

for (const [what, id] of [
  ["does not exist", "0199c3a0-5c1e-7d4f-9a61-2b7c8e5d4f10"],
  ["is no UUID", "bogus"],
] as const)
  await test(`there is no balance of an organization that ${what}`, async () => {
    assert.deepEqual(await call(["balance", "--organization", id]), {
      status: 1,
      out: "",
      err: "svc balance: no such organization\n",
    });
  });

await test("a page of businesses is a table, with where the next begins", async () => {
  assert.equal((await call(["business", "list"])).out, "none\n");
  const page = { items: [{ address: "0xa", name: "Example AG" }], nextCursor: "0xa" };
  assert.equal(forPeople(page), "address  name\n0xa      Example AG\nnextCursor  0xa\n");
});

await test("a page of businesses begins after an address and after nothing else", async () => {
  const { status, out, err } = await call(["business", "list", "--after", "bogus"]);
  assert.deepEqual({ status, out }, { status: 1, out: "" });
  assert.match(err, /after the address of a business\n$/);
});

await test("an option that stands once may not be given twice, one that repeats may", async () => {
  const create = ["organization", "create", "--name", "One AG"];
  assert.deepEqual(await call([...create, "--name=Two AG"]), {
    status: 2,
    out: "",
    err: "svc organization create: --name is given twice; see svc organization create --help\n",
  });
  const hosts = ["domain", "callback-hosts", "bogus", "--host", "a.example", "--host", "b.example"];
  assert.equal((await call(hosts)).status, 1);
});

await test("the level of the log is listed as the service would have it", async () => {
  const { out } = await call(["settings", "--json"], { LOG_LEVEL: "debug" });
  const rows = JSON.parse(out) as { setting: string; value: unknown }[];
  assert.equal(rows.find((row) => row.setting === "LOG_LEVEL")?.value, "debug");
});

// Members of a business, each with the wallet's own command line: they found it, decide what others ask, and change it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAddress } from "@svc/protocol";
import { setBusinessVerified } from "../../service/src/kyb/index.ts";
import { openCommandLineWallet } from "../command-line-wallet.ts";
import { openKybWorld } from "../kyb-world.ts";

type Value = Record<string, unknown>;

await using world = await openKybWorld();
const names = ["alice", "bob", "carol"] as const;
const identities = Object.fromEntries(names.map((name) => [name, world.person(name)]));
await using wallet = await openCommandLineWallet(world.baseUrl, identities);

async function run(name: string, ...args: string[]): Promise<Value> {
  const { status, value, line } = await wallet.run(name, ...args);
  assert.deepEqual({ status, line }, { status: 0, line: "" }, args.join(" "));
  return value ?? {};
}

async function inbox(name: string): Promise<Value[]> {
  return (await run(name, "inbox"))["votes"] as Value[];
}

async function statusOf(name: string, address: unknown): Promise<Value | null> {
  const items = (await run(name, "business", "list"))["items"] as Value[];
  return items.find((each) => each["address"] === address) ?? null;
}

/** The business that the command line founds. */
let address = "";

await test("three people found a business by command line", async () => {
  const made = await run(
    "alice",
    ..."business create --name Alpine --member bob --member carol --rule data_requests=MAJORITY".split(
      " ",
    ),
  );
  address = String(made["address"]);
  assert.equal(made["status"], "inviting");
  assert.notEqual(parseAddress(address), null);
  const invitation = (await inbox("bob")).find((vote) => vote["kind"] === "invitation");
  assert.equal(invitation?.["id"], made["invitationId"]);
  assert.match(String(invitation?.["words"]), /found the business "Alpine"/);
  const accepted = await run("bob", "business", "accept", String(made["invitationId"]));
  assert.deepEqual([accepted["status"], accepted["address"]], ["open", address]);
  const last = await run("carol", "business", "accept");
  assert.equal(last["status"], "approved");
  await world.until("it is active", async () => {
    const found = await statusOf("alice", address);
    return found?.["status"] === "active" ? found : null;
  });
  await setBusinessVerified(
    world.ctx,
    { address: address as `0x${string}`, isVerified: true },
    "test",
  );
});

await test("a change takes the votes of its members, the proposer's among them", async () => {
  const proposed = await run(
    "alice",
    ...`business rules --rule data_requests=UNANIMOUS --business ${address}`.split(" "),
  );
  assert.equal(proposed["status"], "open");
  const id = String(proposed["proposalId"]);
  const vote = (await inbox("bob")).find((each) => each["id"] === id);
  assert.deepEqual([vote?.["kind"], vote?.["operation"]], ["governance", "changeCharter(bytes)"]);
  assert.equal((await run("bob", "vote", id, "--approve"))["status"], "approved");
  // The same vote again is no other vote.
  assert.equal((await run("bob", "vote", id, "--approve"))["status"], "approved");
  await world.until("the rule holds", async () => {
    const found = await statusOf("bob", address);
    const rules = found?.["rules"] as Value | undefined;
    return rules?.["data_requests"] === "UNANIMOUS" ? true : null;
  });
});

await test("a removal is proposed to the others, and its member keeps its place", async () => {
  const named = ["--business", address];
  const proposed = await run("alice", "business", "remove", "carol", ...named);
  const id = String(proposed["proposalId"]);
  assert.equal(
    (await inbox("carol")).some((each) => each["id"] === id),
    false,
  );
  await run("bob", "vote", id, "--approve");
  await world.until("the removal is under way", async () => {
    const found = await statusOf("carol", address);
    return found?.["removal"] ?? null;
  });
  assert.equal((await wallet.run("bob", "business", "keep", ...named)).status, 1);
  assert.deepEqual(await run("carol", "business", "keep", ...named), { address, ended: "removal" });
});

await test("history tells of votes without values, and wrong use is one line", async () => {
  const items = (await run("bob", "history"))["items"] as Value[];
  assert.deepEqual([...new Set(items.map((each) => each["action"]))], ["vote"]);
  for (const args of [
    ["vote", "nothing"],
    ["vote", "nothing", "--approve"],
    ["business", "rules", "--business", address],
    ["business", "rules", "--rule", "data=ALL"],
    ["business", "create", "--member", "dave", "--name", "X"],
  ]) {
    const { status, line, value } = await wallet.run("bob", ...args);
    assert.deepEqual([status, value, line.split("\n").length], [1, null, 2], line);
  }
});

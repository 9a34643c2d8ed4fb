import assert from "node:assert/strict";
import { test } from "node:test";
import { callCommandLine } from "./test-call.ts";
import { verbs } from "./verbs.ts";

for (const verb of verbs) {
  void test(`svc ${verb.name} --help says what it does, each option and an example`, async () => {
    const { status, out, err } = await callCommandLine([...verb.name.split(" "), "--help"]);
    assert.deepEqual({ status, err }, { status: 0, err: "" });
    assert.ok(out.startsWith(verb.summary));
    assert.ok(out.includes(`Example: svc ${verb.example}`));
    for (const name of Object.keys(verb.options ?? {})) assert.ok(out.includes(`--${name}`));
    for (const { name } of verb.parameters ?? []) assert.ok(out.includes(`<${name}>`));
    assert.ok(verb.example.startsWith(verb.name));
  });
}

void test("svc <verb> --help names --json, except of serve, which prints no result", async () => {
  const silent = [];
  for (const { name } of verbs)
    if (!(await callCommandLine([...name.split(" "), "--help"])).out.includes("--json"))
      silent.push(name);
  assert.deepEqual(silent, ["serve"]);
});

void test("svc --help lists every verb, a group its own", async () => {
  const all = await callCommandLine(["--help"]);
  assert.equal(all.status, 0);
  for (const verb of verbs) assert.ok(all.out.includes(`  ${verb.name} `));
  const group = await callCommandLine(["organization", "member", "--help"]);
  assert.ok(group.out.includes("organization member add"));
  assert.ok(!group.out.includes("client create"));
});

void test("the help of a new client names the defaults, that of an update none", async () => {
  const [create, update] = await Promise.all(
    ["create", "update"].map(async (verb) => callCommandLine(["client", verb, "--help"])),
  );
  for (const text of ["into the wallet.", "be bound by DPoP."]) {
    assert.ok(create?.out.includes(`${text} Default: `), text);
    assert.ok(update?.out.includes(text), text);
  }
  assert.doesNotMatch(update?.out ?? "", /Default:/);
});

void test("help can be requested in the usual ways, and the version too", async () => {
  const all = await callCommandLine(["--help"]);
  for (const args of [["-h"], ["help"], ["help", "--help"]])
    assert.deepEqual(await callCommandLine(args), all, args.join(" "));
  const one = await callCommandLine(["client", "create", "--help"]);
  for (const args of [
    ["client", "create", "-h"],
    ["help", "client", "create"],
    ["--json", "help", "client", "create"],
  ])
    assert.deepEqual(await callCommandLine(args), one, args.join(" "));
  const { status, out, err } = await callCommandLine(["--version"]);
  assert.deepEqual({ status, err }, { status: 0, err: "" });
  assert.match(out, /^svc \d+\.\d+\.\d+\n$/);
  assert.equal((await callCommandLine(["help", "frob"])).status, 2);
});

void test("a misspelled second word of a verb leads to the help of the group", async () => {
  const { status, err } = await callCommandLine(["client", "lst"]);
  assert.equal(status, 2);
  assert.equal(err, 'svc: there is no verb "client lst"; see svc client --help\n');
});

void test("the value of an option is not taken for a word of a verb", async () => {
  for (const [args, err] of [
    [["frob", "--name", "Shop", "--role", "OWNER"], 'there is no verb "frob"; see svc --help'],
    [["--name", "Shop"], "no verb is given; see svc --help"],
    [
      ["--name", "Shop", "--replace", "client", "show", "c1"],
      "options must come after the verb; see svc client show --help",
    ],
  ] as const)
    assert.deepEqual(await callCommandLine(args), { status: 2, out: "", err: `svc: ${err}\n` });
});

// The READMEs of the packages tell the truth: their programs run, and what they say to use is there.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { openFakeIssuer } from "../packages/merchant/test/fake-issuer.ts";
import { programOf, root, runProgram } from "./transcript.ts";

const names = globSync("packages/*/README.md", { cwd: root }).map((path) =>
  basename(dirname(path)),
);
const read = (path: string): string => readFileSync(join(root, "packages", path), "utf8");
const programIn = (name: string): string => programOf(read(`${name}/README.md`));

const runs: Readonly<Record<string, () => Promise<void>>> = {
  async protocol() {
    assert.equal(await runProgram(programIn("protocol")), "sign");
  },
  async wallet() {
    // With type=qr the answer is shown and not sent, so the program runs without a broker.
    const printed = await runProgram(
      programIn("wallet"),
      `const link = "svc:sign?data=0x6869&type=qr";`,
      `for (const confirmed of [{}, null]) console.log((await answer(link, async () => confirmed)).payload);`,
    );
    assert.match(printed, /^\S.+\n.*"signature":.*\n.*"error":"access_denied".*$/);
  },
  async merchant() {
    await using fake = await openFakeIssuer();
    const printed = await runProgram(
      `import { signedHeaders, signingKey, statusBody } from "./packages/merchant/test/signed-webhook.ts";`,
      `globalThis.secrets = { clientId: "shop", clientSecret: "secret", signingKey };`,
      programIn("merchant").replaceAll("https://id.example", fake.url),
      `const back = "/callback?iss=${fake.url}&error=access_denied&state=" + pending.state;`,
      `const body = statusBody(1, "CONFIRMED");`,
      `const headers = signedHeaders(body, { t: Math.floor(Date.now() / 1000) });`,
      `const webhook = new Request("https://shop.example/hook", { method: "POST", headers, body });`,
      `console.log(new URL(url).origin, await finishLogin(back, pending), (await takeWebhook(webhook)).status);`,
    );
    assert.equal(printed, `${fake.url} null CONFIRMED`);
  },
};

test("the programs in the READMEs of the packages run", { concurrency: true }, async (t) => {
  assert.deepEqual(names.toSorted(), Object.keys(runs).toSorted());
  await Promise.all(Object.entries(runs).map(([name, run]) => t.test(name, run)));
});

test("what the READMEs of the packages say to use is there", () => {
  const verbs: Readonly<Record<string, string>> = {
    login: read("merchant/src/login.ts"),
    wallet: read("wallet/src/wallet.ts"),
  };
  for (const name of names) {
    const exported = read(`${name}/src/index.ts`);
    const rows = read(`${name}/README.md`).matchAll(/^\| [^|]+ \| ((?:`[\w.]+`(?:, )?)+) +\|/gm);
    const used = [...rows].flatMap(([, cell = ""]) => cell.match(/[\w.]+/g) ?? []);
    assert.ok(used.length > 10, name);
    const missing = used.filter((each) => {
      const [verb = "", owner = ""] = each.split(".").toReversed();
      return !new RegExp(`\\b${verb}\\b`).test(verbs[owner] ?? exported);
    });
    assert.deepEqual(missing, [], name);
  }
});

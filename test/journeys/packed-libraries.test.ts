// The libraries outside this repository: as JavaScript and declarations, on a Node that knows nothing of our sources.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { parseLink } from "@svc/protocol";
import { openWorld, type World } from "../world.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const names = ["protocol", "merchant", "wallet"];

/** Type-checks, as what is imported has types; and prints a login page's address and what else it is answered. */
const program = `
import { MerchantError, openMerchant } from "@svc/merchant";
import { parseLink } from "@svc/protocol";
import { memoryStorage, type WalletStorage } from "@svc/wallet";

const [issuer = "", clientId = ""] = process.argv.slice(2);
const back = "http://localhost:4999/callback";
const merchant = openMerchant({ issuer, clientId, clientSecret: "s", redirectUri: back });
const { url, ...pending } = await merchant.login.start();
const caught: unknown = await merchant.login.finish(back + "?state=other", pending).catch((error) => error);
const storage: WalletStorage = memoryStorage();
// @ts-expect-error a client id is a text
export const refused = (): unknown => openMerchant({ issuer, clientId: 5, redirectUri: back });
console.log(JSON.stringify({
  url,
  refusal: caught instanceof MerchantError ? caught.code : "",
  kept: await storage.list("history"),
  link: parseLink("https://shop.example"),
}));
`;

let world: World;
let folder: string;
let out: string;
before(async () => {
  world = await openWorld();
  folder = await mkdtemp(join(tmpdir(), "svc-shop-"));
  await mkdir(join(root, "node_modules/.cache"), { recursive: true });
  out = await mkdtemp(join(root, "node_modules/.cache/packages-"));
});
after(async () => {
  await world[Symbol.asyncDispose]();
  for (const each of [folder, out]) await rm(each, { recursive: true, force: true });
});

/** Puts the packages, and what they say that they need, where npm would. */
async function install(): Promise<void> {
  const modules = join(folder, "node_modules");
  for (const name of names) {
    const place = join(modules, "@svc", name);
    await mkdir(place, { recursive: true });
    const archive = join(out, `svc-${name}-0.1.0.tgz`);
    await run("tar", ["-xzf", archive, "-C", place, "--strip-components=1"]);
    const manifest = await readFile(join(place, "package.json"), "utf8");
    const { dependencies } = JSON.parse(manifest) as { dependencies: Record<string, string> };
    for (const each of Object.keys(dependencies).filter((known) => !known.startsWith("@svc/"))) {
      await mkdir(dirname(join(modules, each)), { recursive: true });
      await symlink(join(root, "node_modules", each), join(modules, each)).catch(() => undefined);
    }
  }
}

test("a project outside the repository installs the packed libraries, type-checks and begins a login", async () => {
  await run(process.execPath, ["--conditions=source", join(root, "tools/pack.ts"), out]);
  await install();
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(folder, "shop.ts"), program);
  const compilerOptions = {
    strict: true,
    module: "nodenext",
    target: "es2024",
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  await run(join(root, "node_modules/.bin/tsc"), ["-p", folder]);
  const given = [join(folder, "shop.js"), world.baseUrl, world.client.id];
  const { stdout } = await run(process.execPath, given, { env: { NODE_ENV: "production" } });
  const { url, ...rest } = JSON.parse(stdout) as { url: string };
  assert.ok(url.startsWith(`${world.baseUrl}/oauth2/auth?`), url);
  assert.deepEqual(rest, {
    refusal: "state_mismatch",
    kept: [],
    link: parseLink("https://shop.example"),
  });
});

// What `npm run pack` makes, used as a project outside this repository uses it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { parseLink } from "@svc/protocol";
import { programOf } from "../test/transcript.ts";
import { openWorld } from "../test/world.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const libraries = ["protocol", "merchant", "wallet"] as const;

interface Packed {
  readonly dependencies: Record<string, string>;
  readonly main: string;
  readonly types: string;
  readonly exports: Record<string, unknown>;
}

let project: string;
const folderOf = (library: string): string => join(project, "node_modules/@svc", library);
const filesOf = (library: string): string[] =>
  readdirSync(folderOf(library), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folderOf(library).length + 1));

before(async () => {
  project = await mkdtemp(join(tmpdir(), "svc-pack-"));
  const packed = join(project, "packed");
  const pack = ["--conditions=source", join(root, "tools/pack.ts"), packed];
  await run(process.execPath, pack);
  for (const library of libraries) {
    const folder = folderOf(library);
    await mkdir(folder, { recursive: true });
    const tarball = join(packed, `svc-${library}-0.1.0.tgz`);
    await run("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"]);
    await linkDependencies(folder);
  }
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
});
after(() => rm(project, { recursive: true, force: true }));

/** Other people's packages are those of this repository, so that nothing is fetched. */
async function linkDependencies(folder: string): Promise<void> {
  const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Packed;
  for (const name of Object.keys(dependencies).filter((each) => !each.startsWith("@svc/"))) {
    const link = join(folder, "node_modules", name);
    await mkdir(join(link, ".."), { recursive: true });
    await symlink(join(root, "node_modules", name), link);
  }
}

test("a package holds its code with types, a README and the license, and neither tests nor sources", () => {
  for (const library of libraries) {
    const files = filesOf(library).filter((file) => !file.startsWith("node_modules/"));
    const loose = files.filter((file) => !/^lib\/[\w./-]+(?<!\.test)(?:\.d\.ts|\.js)$/.test(file));
    assert.deepEqual(loose.toSorted(), ["LICENSE", "README.md", "package.json"], library);
    const manifest = readFileSync(join(folderOf(library), "package.json"), "utf8");
    // What a compiler to CommonJS reads that knows no `exports` has to be the same.
    const { main, types, exports } = JSON.parse(manifest) as Packed;
    assert.deepEqual({ types, default: main }, exports["."], library);
    assert.ok(files.includes("lib/index.js") && files.includes("lib/index.d.ts"), library);
  }
});

test("a folder that holds sources is refused before anything in it is removed", async () => {
  const sources = join(project, "sources");
  const kept = [join(sources, "protocol/README.md"), join(sources, "wallet/src/index.ts")];
  for (const file of kept) {
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, "");
  }
  const pack = ["--conditions=source", join(root, "tools/pack.ts"), sources];
  await assert.rejects(run(process.execPath, pack), /wallet holds sources: name another folder/);
  assert.deepEqual(kept.filter(existsSync), kept);
});

test("a package is loaded by import and by require, and tells its version", async () => {
  const imports = libraries.map((each) => `Object.keys(await import("@svc/${each}")).length`);
  const requires = libraries.map((each) => `Object.keys(require("@svc/${each}")).length`);
  const versions = libraries.map((each) => `require("@svc/${each}/package.json").version`);
  await writeFile(join(project, "load.mjs"), `console.log([${imports.join()}].join(" "));`);
  await writeFile(
    join(project, "load.cjs"),
    `console.log([${requires.join()}].join(" "));\nconsole.log(${versions.join()});`,
  );
  const load = async (file: string) =>
    (await run(process.execPath, [file], { cwd: project })).stdout.trim().split("\n");
  const [imported] = await load("load.mjs");
  assert.match(imported ?? "", /^\d\d+ \d\d+ \d\d+$/);
  assert.deepEqual(await load("load.cjs"), [imported, "0.1.0 0.1.0 0.1.0"]);
});

/** Type-checks, as what is imported has types; and prints a login page's address and what else it is answered. */
const shop = `
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

/** What the compiler of a project, with these options beside the strictest, says of its files; empty if all is well. */
async function compile(include: readonly string[], options: object): Promise<string> {
  const compilerOptions = {
    strict: true,
    skipLibCheck: false,
    target: "es2022",
    lib: ["es2022"],
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
    ...options,
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include }));
  const { stdout } = await run(join(root, "node_modules/.bin/tsc"), ["-p", project]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

test("a project outside the repository type-checks with the packed libraries and the code in their READMEs, however strictly it reads them, and begins a login", async () => {
  await writeFile(join(project, "shop.ts"), shop);
  const include = libraries.map((library) => `${library}.ts`);
  for (const library of libraries) {
    const code = programOf(readFileSync(join(folderOf(library), "README.md"), "utf8"));
    assert.ok(code.includes(`from "@svc/${library}"`));
    await writeFile(join(project, `${library}.ts`), code);
  }
  const nodenext = { module: "nodenext", exactOptionalPropertyTypes: true };
  assert.equal(await compile(["shop.ts", ...include], nodenext), "");
  const bundler = { module: "esnext", moduleResolution: "bundler", noEmit: true };
  assert.equal(await compile(include, bundler), "");

  await using world = await openWorld();
  const given = [join(project, "shop.js"), world.baseUrl, world.client.id];
  const { stdout } = await run(process.execPath, given, { env: { NODE_ENV: "production" } });
  const { url, ...rest } = JSON.parse(stdout) as { url: string };
  assert.ok(url.startsWith(`${world.baseUrl}/oauth2/auth?`), url);
  assert.deepEqual(rest, {
    refusal: "state_mismatch",
    kept: [],
    link: parseLink("https://shop.example"),
  });
});

test("code for browsers uses nothing of Node, except in files that a condition of the manifest selects for Node", () => {
  for (const library of ["protocol", "wallet"]) {
    const code = filesOf(library).filter((file) => /^lib\/.*\.js$/.test(file));
    const ofNode = code.filter((file) =>
      /from "node:|\bBuffer\b|\bprocess\./.test(
        readFileSync(join(folderOf(library), file), "utf8"),
      ),
    );
    assert.deepEqual(ofNode, library === "wallet" ? ["lib/scrypt-node.js"] : [], library);
  }
});

test("a program that asks no node of a chain does not load the chain's client", async () => {
  const refuseViem = `import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) {
      if (name.startsWith("viem")) throw new Error("loads " + name);
      return next(name, context);
    } });`;
  const program = `import { verifyBusinessSignature } from "@svc/merchant";
    const asked = { rpcUrl: "http://localhost:1", chainId: 1, business: "0x${"1".repeat(40)}" };
    const signature = "0x01${"ab".repeat(32)}";
    await verifyBusinessSignature(signature, { message: "hi" }, asked).catch(({ message }) => console.log(message));`;
  await writeFile(join(project, "refuse.mjs"), refuseViem);
  await writeFile(join(project, "lazy.mjs"), program);
  const { stdout } = await run(process.execPath, ["--import", "./refuse.mjs", "lazy.mjs"], {
    cwd: project,
  });
  assert.equal(stdout, "loads viem\n");
});

// `npm run pack [folder]`: the libraries as packages, for projects outside this repository. Inside it everything runs from
// its source, and nothing has to be built.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { join, relative, resolve } from "node:path";

interface Library {
  readonly folder: string;
  readonly summary: string;
  /** The libraries before it in the list that it uses. */
  readonly uses: readonly string[];
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly type: string;
  readonly imports?: unknown;
  readonly dependencies: Record<string, string>;
}

const libraries: readonly Library[] = [
  { folder: "protocol", summary: "svc: links, results, signatures and receipts", uses: [] },
  {
    folder: "merchant",
    summary: "Server SDK of svc: login, verified fields and businesses",
    uses: ["protocol"],
  },
  { folder: "wallet", summary: "The core of a wallet that speaks svc:", uses: ["protocol"] },
];

const root = join(import.meta.dirname, "..");
const out = resolve(process.argv[2] ?? join(root, "dist"));
const binaries = join(root, "node_modules/.bin");

/** Writes the tsconfig beside the package that it makes, because its paths are relative. */
function writeProject({ folder, uses }: Library): string {
  const project = join(out, folder, "tsconfig.json");
  const source = relative(join(out, folder), join(root, "packages", folder, "src"));
  writeJson(project, {
    extends: relative(join(out, folder), join(root, "tsconfig.base.json")),
    compilerOptions: {
      composite: true,
      noEmit: false,
      rootDir: source,
      outDir: "lib",
      rewriteRelativeImportExtensions: true,
      typeRoots: [relative(join(out, folder), join(root, "node_modules/@types"))],
      types: ["node"],
    },
    include: [source],
    exclude: ["**/*.test.ts", "cli.ts", "command-line"].map((each) => join(source, each)),
    references: uses.map((each) => ({ path: `../${each}` })),
  });
  return project;
}

/** Writes the manifest of a package, in which the code is JavaScript and the types are declarations. */
function writeManifest({ folder, summary }: Library): void {
  const text = readFileSync(join(root, "packages", folder, "package.json"), "utf8");
  const { name, version, license, type, imports, dependencies } = JSON.parse(text) as Manifest;
  const compiled = JSON.stringify(imports ?? {})
    .replaceAll('"./src/', '"./lib/')
    .replaceAll('.ts"', '.js"');
  writeJson(join(out, folder, "package.json"), {
    name,
    version,
    description: summary,
    license,
    type,
    // The first Node whose `require` loads ES modules. Before 22.7 even `import` fails for hash-wasm, whose manifest does
    // not say that it is one.
    engines: { node: ">=22.12" },
    files: ["lib"],
    // Bundlers leave out what a program does not use, such as the chain's client of one that only logs people in.
    sideEffects: false,
    // For TypeScript with the module resolution `node10`, which does not read `exports`.
    main: "./lib/index.js",
    types: "./lib/index.d.ts",
    exports: {
      ".": { types: "./lib/index.d.ts", default: "./lib/index.js" },
      "./package.json": "./package.json",
    },
    imports: JSON.parse(compiled) as unknown,
    dependencies,
  });
  copyFileSync(join(root, "LICENSE"), join(out, folder, "LICENSE"));
  copyFileSync(join(root, "packages", folder, "README.md"), join(out, folder, "README.md"));
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

function run(command: string, ...given: string[]): void {
  execFileSync(command, given, { stdio: ["ignore", "inherit", "inherit"] });
}

for (const { folder } of libraries) {
  if (existsSync(join(out, folder, "src")))
    throw new Error(`${join(out, folder)} holds sources: name another folder`);
}
for (const { folder } of libraries) {
  rmSync(join(out, folder), { recursive: true, force: true });
  mkdirSync(join(out, folder), { recursive: true });
}
run(join(binaries, "tsc"), "-b", ...libraries.map(writeProject));
libraries.forEach(writeManifest);
const folders = libraries.map(({ folder }) => join(out, folder));
run("npm", "pack", "--silent", "--pack-destination", out, ...folders);

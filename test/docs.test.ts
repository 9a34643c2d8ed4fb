// The documentation tells the truth: links lead somewhere, names exist, and transcripts print what they say.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { businessFieldNames, fieldNames, parentNames } from "@svc/protocol";
import requestObjects from "../packages/protocol/vectors/request-objects.json" with { type: "json" };
import reserved from "../packages/protocol/vectors/reserved.json" with { type: "json" };
import { verbs } from "../service/src/command-line/index.ts";
import { documents } from "../service/src/credentials/field-value.ts";
import { failureReasons } from "../service/src/kyc/order.ts";
import { userScopes } from "../service/src/login/authorization/scope.ts";
import { parseConfig, settings } from "../service/src/platform/config/config.ts";
import { verbs as walletVerbs } from "../packages/wallet/src/command-line/run.ts";
import { askBusiness, type DemoWorld, openDemoWorld, visit, type Visitor } from "./demo-world.ts";
import { missingTests } from "./quoted-tests.ts";
import {
  type Bindings,
  compare,
  fill,
  root,
  run,
  runByShell,
  runProgram,
  stepsOf,
} from "./transcript.ts";

const pages = globSync("{*.md,docs/**/*.md,packages/*/*.md,service/*.md}", {
  cwd: root,
}).toSorted();
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const everyFile = new Set(
  globSync("{packages,apps,service,demo,test,bench,tools,docs}/**/*", {
    cwd: root,
    exclude: ["**/node_modules/**"],
  }),
);

let demo: DemoWorld;

before(async () => {
  demo = await openDemoWorld();
});
after(async () => demo[Symbol.asyncDispose]());

/** The page with this demo's ports in place of those of the documentation. */
function atOurPorts(text: string): string {
  return text.replaceAll(
    /localhost:400(\d)/g,
    (_, digit: string) => `localhost:${demo.port + Number(digit)}`,
  );
}

/** Runs every transcript of a page, in order; a person stands before the QR page where one is needed. */
async function runPage(path: string, runStep = run): Promise<Visitor | null> {
  const bindings: Bindings = new Map();
  const visitors: Visitor[] = [];
  const person = {
    link: async () => {
      const visitor = await visit(demo);
      visitors.push(visitor);
      return visitor.link;
    },
    digits: async () => visitors.at(-1)?.digits() ?? "",
  };
  const steps = stepsOf(atOurPorts(read(path)));
  assert.ok(steps.length > 0, `${path} has no transcript`);
  for (const { command, output } of steps) {
    if (command === "npm start") {
      compare(`\n${demo.output}`, output, bindings);
      continue;
    }
    // This command needs a finished login; with scripts the page finishes it by itself.
    if (/ logins /.test(command) && !bindings.has("login")) await visitors.at(-1)?.goOn();
    // The page shows a vote in this inbox, so somebody has to ask for one first.
    if (/ inbox /.test(command) && !bindings.has("request")) await askBusiness(demo);
    let printed = await runStep(await fill(command, bindings, person), demo.environment);
    for (let tries = 1; tries < 20 && /code_expired/.test(printed); tries += 1) {
      // A code lives for seconds, and a busy machine may be too slow: copy the next one.
      bindings.delete("link");
      printed = await runStep(await fill(command, bindings, person), demo.environment);
    }
    compare(printed, output, bindings);
  }
  return visitors.at(-1) ?? null;
}

test("the transcripts print what they say", { concurrency: true }, async (t) => {
  await Promise.all([
    t.test(
      "the transcripts of the README print what they say, and end with the shop's greeting",
      async () => {
        const visitor = await runPage("README.md", runByShell);
        assert.match((await visitor?.goOn()) ?? "", /<h1>Hello 0x/);
      },
    ),
    t.test(
      "the transcripts of the wallet's guide print what they say",
      async () => void (await runPage("docs/guides/wallet.md")),
    ),
    t.test(
      "the transcripts of the operator's guide print what they say",
      async () => void (await runPage("docs/guides/operate.md")),
    ),
  ]);
});

test("the program in the wallet's guide runs", async () => {
  const [, program = ""] = /```ts\n([\s\S]*?)```/.exec(read("docs/guides/wallet.md")) ?? [];
  // With type=qr the answer is shown and not sent, so the program runs without a broker.
  const printed = await runProgram(
    `const mnemonic = "${"test ".repeat(11)}junk";`,
    `const link = "svc:sign?data=0x6869&type=qr";`,
    program,
    "console.log(`${outcome.kind} ${words.length > 0}`);",
  );
  assert.equal(printed, "shown true");
});

test("every block of code runs, or is of a language that does not", () => {
  const languages = pages.flatMap((path) =>
    [...read(path).matchAll(/^```(.+)$/gm)].map(([, language = ""]) => `${path}: ${language}`),
  );
  // The blocks of the merchants' guides are compared with the shop's files by the SDK's own test, and those of the
  // packages run in `package-readmes.test.ts` and are compiled by the test of `npm run pack`.
  const running =
    /: console$|^docs\/guides\/(?:login|wallet|kyc|kyb)\.md: (?:ts|diff)$|^packages\/\w+\/README\.md: ts$/;
  const plain = /: (?:sh|json|nginx|haproxy|caddyfile)$/;
  assert.deepEqual(
    languages.filter((each) => !running.test(each) && !plain.test(each)),
    [],
  );
});

test("every transcript is on a page whose transcripts run", () => {
  const withTranscripts = pages.filter((path) => stepsOf(read(path)).length > 0);
  assert.deepEqual(withTranscripts, [
    "README.md",
    "docs/guides/operate.md",
    "docs/guides/wallet.md",
  ]);
});

test("the exports of the operator's guide are all that production needs", () => {
  const [block = ""] =
    /^export PROFILE=production$[\s\S]*?^```$/m.exec(read("docs/guides/operate.md")) ?? [];
  const exported = [...block.matchAll(/^export (\w+)=(<64 hex digits>|\S+)/gm)].map(
    ([, name = "", value = ""]) => [
      name,
      value.startsWith("<") ? randomBytes(32).toString("hex") : value,
    ],
  );
  const unset = Object.values(settings).map(({ env }) => [env, ""]);
  const config = parseConfig(Object.fromEntries([...unset, ...exported]) as NodeJS.ProcessEnv);
  assert.equal(config.profile, "production");
});

/** What a verb of the operator prints. */
const svc = async (args: string): Promise<Record<string, unknown>> =>
  JSON.parse(await run(`npm run -s svc -- ${args} --json`, demo.environment)) as Record<
    string,
    unknown
  >;

test("a new organization gets its package as the guide to verified fields says", async () => {
  const { id: organization } = await svc('organization create --name "New AG"');
  const own = `--organization ${String(organization)}`;
  const { id: domain } = await svc(
    `domain create ${own} --domain localhost:4997 --environment live`,
  );
  const [block = ""] = /^```sh\n[\s\S]*?^```$/m.exec(read("docs/guides/kyc.md")) ?? [];
  const calls = [...block.matchAll(/^npm run svc -- (.+)$/gm)].map(([, call = ""]) =>
    call
      .replaceAll("<organization>", String(organization))
      .replaceAll("<client domain>", String(domain)),
  );
  const answers: Record<string, unknown>[] = [];
  for (const call of calls) answers.push(await svc(call));
  const [, key, kycPackage] = answers;
  assert.ok(key?.["key"] !== undefined && kycPackage?.["signingKey"] !== undefined);
});

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => text);
  return new Set(
    headings.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test("every relative link and image leads to something that is there", () => {
  const broken = pages.flatMap((path) => {
    const text = read(path).replaceAll(/^```[\s\S]*?^```$/gm, "");
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
    return links
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [file = "", anchor] = link.split("#");
        const target = file === "" ? path : normalize(join(dirname(path), file));
        if (!existsSync(join(root, target))) return true;
        return anchor !== undefined && !anchorsOf(read(target)).has(anchor);
      })
      .map((link) => `${path}: ${link}`);
  });
  assert.deepEqual(broken, []);
});

test("every page of the documentation is on its index", () => {
  const index = read("docs/README.md");
  const all = pages.filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
  assert.ok(all.length > 20);
  assert.deepEqual(
    all.filter((path) => !index.includes(`](${path.slice("docs/".length)})`)),
    [],
  );
});

test("every picture that is taken stands on a page", () => {
  const shown = pages.map(read).join("\n");
  const pictures = globSync("docs/images/*", { cwd: root }).map((path) => basename(path));
  assert.deepEqual(
    pictures.filter((picture) => !shown.includes(`/${picture})`)),
    [],
  );
});

/** All code of a page: blocks and inline spans. */
function codeOf(path: string): string[] {
  const text = read(path);
  const blocks = [...text.matchAll(/^```[a-z]*\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  const indented = [...text.matchAll(/^ {4}(\S.*)$/gm)].map(([, line = ""]) => line);
  const spans = text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`\n]+)`/g);
  return [...blocks, ...indented, ...[...spans].map(([, span = ""]) => span)];
}

const namesIn = (pattern: RegExp): { path: string; name: string }[] =>
  pages.flatMap((path) =>
    codeOf(path).flatMap((code) =>
      [...code.matchAll(pattern)].map(([, name = ""]) => ({ path, name })),
    ),
  );
const told = ({ path, name }: { path: string; name: string }): string => `${path}: ${name}`;

test("every file that the pages name is there", () => {
  const files = namesIn(
    /(?<![\w/.<-])((?:packages|apps|service|demo|test|bench|tools|docs)\/[\w./*-]*[\w*]|[a-z-]+(?:\.test)?\.ts)(?![\w/*])/g,
  );
  assert.ok(files.length > 30);
  const names = new Set([...everyFile].map((file) => basename(file)));
  const missing = files.filter(({ name }) => {
    if (!name.includes("/")) return !names.has(name);
    return name.includes("*") ? globSync(name, { cwd: root }).length === 0 : !everyFile.has(name);
  });
  assert.deepEqual(missing.map(told), []);
});

test("every test that the pages quote is there", () => {
  const quotes = pages.flatMap((path) =>
    [...read(path).matchAll(/`([\w/-]+\.(?:test\.ts|t\.sol))`((?:,? "[^"]+")+)/g)].flatMap(
      ([, file = "", titles = ""]) =>
        [...titles.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => ({ path, file, title })),
    ),
  );
  assert.ok(quotes.length > 30);
  const missing = missingTests(quotes);
  assert.deepEqual(
    missing.map(({ path, file, title }) => `${path}: ${file} "${title}"`),
    [],
  );
});

test("where the pages list the scopes, they name each that the service grants", () => {
  const lists: [page: string, list: RegExp][] = [
    ["docs/guides/migrate-from-hydra.md", /^\| scopes .* any that .*$/m],
    ["docs/reference/api.md", /^\| `scope` .*$/m],
  ];
  for (const [page, list] of lists) {
    const [line = ""] = list.exec(read(page)) ?? [];
    for (const scope of userScopes) assert.ok(line.includes(`\`${scope}\``), `${page}: ${scope}`);
    assert.doesNotMatch(line, /not there yet/, page);
  }
});

test("every setting that the pages name exists", () => {
  const known = new Set<string>(Object.values(settings).map(({ env }) => env));
  // Capitals that are no settings: of the wallet, tests, Node, documents to sign, fields and failure reasons.
  known.add("WALLET_PASSPHRASE").add("TEST_DATABASE_URL").add("NODE_EXTRA_CA_CERTS");
  known.add("TYPED_DATA");
  for (const name of [
    ...fieldNames,
    ...parentNames,
    ...businessFieldNames,
    ...failureReasons,
    ...documents,
  ])
    known.add(name);
  const named = namesIn(/(?<![\w.$-])([A-Z]+(?:_[A-Z]+)+|[A-Z]+(?==\S))(?!\w)/g);
  assert.ok(named.length > 20);
  assert.deepEqual(named.filter(({ name }) => !known.has(name)).map(told), []);
});

const walletPages = ["docs/reference/links.md", "docs/reference/wallets.md"];

test("every type that wallets sign stands on their pages, to the letter", () => {
  const named = new Set(walletPages.flatMap(codeOf));
  const missing = reserved.types.filter(({ encodeType }) => !named.has(encodeType));
  assert.deepEqual(
    missing.map(({ name }) => name),
    [],
  );
});

test("every claim of the vectors' request objects is told", () => {
  const named = new Set(walletPages.flatMap(codeOf));
  const claims = requestObjects.good
    .filter(({ what }) => !what.includes("a claim that nobody knows"))
    .map(({ compact }) => Buffer.from(compact.split(".")[1] ?? "", "base64url").toString())
    .flatMap((payload) => Object.keys(JSON.parse(payload) as object));
  assert.ok(new Set(claims).size > 15);
  assert.deepEqual(
    claims.filter((claim) => !named.has(claim)),
    [],
  );
});

/** @returns what is wrong with the verb or the options of a call; null if nothing */
function faultOfCall(
  call: string,
  known: readonly { name: string; options?: object }[],
): string | null {
  const words = call.split(/[\s,;]+/);
  const fitting = known.filter(({ name }) =>
    name.split(" ").every((word, index) => words[index] === word),
  );
  const verb = fitting.toSorted((a, b) => b.name.length - a.name.length)[0];
  if (verb === undefined) return "no such verb";
  const options = [...call.matchAll(/(?<=\s)--([a-z-]+)/g)].map(([, name = ""]) => name);
  const unknown = options.find(
    (name) => !["json", "help", ...Object.keys(verb.options ?? {})].includes(name),
  );
  return unknown === undefined ? null : `${verb.name} has no --${unknown}`;
}

/** False for the refusals in transcripts, `svc <verb>: why`. */
const isCall = ({ name }: { name: string }): boolean => !/^[a-z -]+: /.test(name);

test("every verb and option that the pages name exists", () => {
  const operator = namesIn(
    /(?:npm run (?:-s |--silent )?svc -- |(?<![\w/@-])svc )([a-z][^`|\n\\]*)/g,
  ).filter(isCall);
  const wallet = namesIn(/(?:npm run (?:-s |--silent )?wallet -- )([a-z][^`|\n\\]*)/g);
  assert.ok(operator.length > 60 && wallet.length >= 8);
  const faults = [
    ...operator.map((each) => [each, faultOfCall(each.name, verbs)] as const),
    ...wallet.map((each) => [each, faultOfCall(each.name, walletVerbs)] as const),
  ];
  assert.deepEqual(
    faults
      .filter(([, fault]) => fault !== null)
      .map(([each, fault]) => `${told(each)}: ${fault ?? ""}`),
    [],
  );
});

test("every address that the pages name is a route", async () => {
  const { paths } = (await (await fetch(`${demo.baseUrl}/openapi.json`)).json()) as {
    paths: Record<string, unknown>;
  };
  const known = Object.keys(paths).map((path) => path.replaceAll(/\{[^}]+\}/g, "<>"));
  const named = namesIn(
    /(?<![\w>/}])(\/(?:oauth2|userinfo|\.well-known|health|api|w)\b[\w./<>-]*)/g,
  );
  assert.ok(named.length > 20);
  const missing = named.filter(({ name }) => {
    const plain = name.replaceAll(/<[^>]+>/g, "<>").replace(/\/$/, "");
    // The common prefix of several routes may be named, too.
    return !known.some((path) => path === plain || path.startsWith(`${plain}/`));
  });
  assert.deepEqual(missing.map(told), []);
});

test("every line of the log that the guide for operators names is written by the service", () => {
  const sources = globSync("service/src/**/*.ts", { cwd: root }).map(read).join("\n");
  const [, table = ""] =
    /^\| `msg` [^\n]*\n((?:\|[^\n]*\n)+)/m.exec(read("docs/guides/operate.md")) ?? [];
  const named = [...table.matchAll(/^\| (`[^|]+`) /gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, line = ""]) => line),
  );
  assert.ok(named.length > 15);
  assert.deepEqual(
    named.filter((line) => !sources.includes(`"${line}"`)),
    [],
  );
});

/** The service's own metrics, without those of Node. */
test("the unit for systemd starts what `npm run svc` starts, and waits until it has drained", () => {
  const unit = read("docs/guides/svc.service");
  const valuesOf = (name: string): string[] =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value = ""]) => value);
  const { scripts } = JSON.parse(read("package.json")) as { scripts: { svc: string } };
  const [, arenas = "", command = ""] =
    /^MALLOC_ARENA_MAX=(\d+) .* exec (node .*)$/.exec(scripts.svc) ?? [];
  const [start = ""] = valuesOf("ExecStart");
  assert.equal(
    start.replace("/opt/svc/node_modules/.bin/", "").replaceAll("/opt/svc/", ""),
    `${command} serve`,
  );
  const environment = Object.fromEntries(valuesOf("Environment").map((each) => each.split("=")));
  const { MALLOC_ARENA_MAX, ...given } = environment;
  assert.equal(MALLOC_ARENA_MAX, arenas);
  const names = new Set(Object.values(settings).map(({ env }) => env));
  assert.deepEqual(
    Object.keys(given).filter((name) => !names.has(name)),
    [],
  );
  assert.equal(environment["PROFILE"], "production");
  const drain = Number(settings.drainSeconds.fallback);
  // Operate, "Stop a process": 0.3 s before, 4 s after.
  assert.ok(Number(valuesOf("TimeoutStopSec")[0]) >= drain + 4.3);
});

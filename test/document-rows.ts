// The tables of the service document and of its decisions as tables of tests: every row is a test of the same name, and
// lists the tests that show it. `checkPromised` finds routes and refusals of the reference that no row is about.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { missingTests, textsOf } from "./quoted-tests.ts";

/** One row. @see showRows */
export interface Row {
  /** What stands in the document. Begins with the status of its answer, where it is one. */
  readonly name: string;
  /** The refusals that it is about, as `errors.md` names them. */
  readonly reasons?: readonly string[];
  /** The routes that it is about, as `api.md` names them. */
  readonly routes?: readonly string[];
  /** File, then titles. */
  readonly shownBy: readonly (readonly [file: string, ...titles: string[]])[];
}

/** A test for every row, which fails where a test that it names is not there. */
export function showRows(rows: readonly Row[]): void {
  for (const { name, shownBy, reasons = [] } of rows)
    test(`tests show "${name}"`, () => {
      const quotes = shownBy.flatMap(([file, ...titles]) =>
        titles.map((title) => ({ file, title })),
      );
      assert.ok(quotes.length > 0, "nothing shows it");
      assert.deepEqual(missingTests(quotes), []);
      const texts = shownBy.map(([file]) => textsOf(file)).join("\n");
      const isNamed = (reason: string): boolean =>
        texts.includes(reason) || texts.includes(messages.get(reason) ?? reason);
      assert.deepEqual(
        reasons.filter((reason) => !isNamed(reason)),
        [],
        "no test of these files looks for them",
      );
    });
}

const readReference = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../docs/reference", name), "utf8");

/** What is told for people, by reason. */
const messages: ReadonlyMap<string, string> = new Map(
  [...readReference("errors.md").matchAll(/^\| \d+ +\| `(\w+)` +\| (.+?) +\| .+\|$/gm)].map(
    ([, reason = "", message = ""]) => [reason, message],
  ),
);

interface Promised {
  readonly routes: string[];
  readonly reasons: string[];
}

/** What the reference says of the routes below a heading. @param isMeant by method and path */
export function promisedBy(heading: string, isMeant: (route: string) => boolean): Promised {
  const [, part = ""] = readReference("api.md").split(`\n## ${heading}\n`);
  const [text = ""] = part.split("\n## ");
  const sections = text.split("\n### ").slice(1);
  const meant = sections
    .map((section) => ({ section, route: (section.split("\n")[0] ?? "").replaceAll("\\", "") }))
    .filter(({ route }) => isMeant(route));
  const reasons = meant.flatMap(({ section }) =>
    [...section.matchAll(/^\| [45]\d\d +\| envelope \| (.+?) *\|$/gm)].flatMap(([, list = ""]) =>
      [...list.matchAll(/`(\w+)`/g)].map(([, reason = ""]) => reason),
    ),
  );
  return { routes: meant.map(({ route }) => route), reasons: [...new Set(reasons)].toSorted() };
}

/** No route and no refusal without a row. */
export function checkPromised(rows: readonly Row[], { routes, reasons }: Promised): void {
  const named = new Set(rows.flatMap((row) => [...(row.routes ?? []), ...(row.reasons ?? [])]));
  assert.ok(routes.length > 0 && reasons.length > 0);
  assert.deepEqual(
    [...routes, ...reasons].filter((each) => !named.has(each)),
    [],
  );
}

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const ownModule = join(import.meta.dirname, "source-imports.ts");
/** Imports of every kind: neighbours, folders above, packages of the repository and others, and Node's modules. */
const imported = join(import.meta.dirname, "../../accounts/index.ts");

/**
 * One line for each import: who imports what, where it was found and as what, in a process that loads {@link imported}.
 */
function listImports(prologue: string): string[] {
  const script = `
    import { registerHooks } from "node:module";
    ${prologue}
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context);
        console.log(context.parentURL, specifier, found.url, found.format);
        return found;
      },
    });
    await import(${JSON.stringify(imported)});`;
  const options = ["--conditions=source", "--input-type=module", "-e", script];
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trimEnd().split("\n").toSorted();
}

test("imports that are resolved by name are those that Node finds", () => {
  const prologue = `import { resolveSourcesByName } from ${JSON.stringify(ownModule)};\nresolveSourcesByName();`;
  const byNode = listImports("");
  assert.ok(byNode.length > 200, `${byNode.length} imports`);
  assert.deepEqual(listImports(prologue), byNode);
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");
const read = (name: string): string => readFileSync(join(root, name), "utf8");
const image = read("Dockerfile");

test("the image is built on the pinned Node", () => {
  const [, version] = /^FROM node:(\S+)-slim$/m.exec(image) ?? [];
  assert.equal(version, read(".node-version").trim());
});

test("the image starts the program as npm run svc does, so that its arguments are the verbs", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const [, entry = ""] = /^ENTRYPOINT (.+)$/m.exec(image) ?? [];
  const started = (JSON.parse(entry) as string[]).join(" ");
  assert.ok(started.startsWith("node "));
  assert.ok(scripts["svc"]?.endsWith(` exec ${started}`));
  const [arenas = ""] = /^MALLOC_ARENA_MAX=\d+/.exec(scripts["svc"] ?? "") ?? [];
  assert.match(image, new RegExp(`^ENV ${arenas}$`, "m"));
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as settle } from "node:timers/promises";
import { runInNewContext } from "node:vm";

import { openWatches } from "./watches.ts";

const minuteMs = 60_000;

test("however many pages one person opens, those of others wait for their own change", async () => {
  const watches = openWatches();
  let answered = 0;
  const pages = Array.from({ length: 1000 }, async () => {
    await watches.next("one", minuteMs);
    answered += 1;
  });
  let isChanged = false;
  const other = watches.next("other", minuteMs).then(() => isChanged);
  await settle();
  assert.equal(answered, 980, "more than twenty of one person are answered at once");
  isChanged = true;
  watches.wake("other");
  assert.equal(await other, true);
  watches.wake("one");
  await Promise.all(pages);
});

test("no page takes the state after a restart, or that of somebody else, for the one it shows", () => {
  const [before, after] = [openWatches(), openWatches()];
  const shown = before.versionOf("one");
  assert.equal(before.versionOf("one"), shown);
  assert.notEqual(before.versionOf("other"), shown);
  assert.notEqual(after.versionOf("one"), shown);
  before.wake("one");
  assert.notEqual(before.versionOf("one"), shown);
  after.wake("one");
  assert.notEqual(after.versionOf("one"), before.versionOf("one"), "both have seen one change");
});

const script = readFileSync(join(import.meta.dirname, "verify.js"), "utf8");
/** The time after which the script gives up a question; no test here waits that long. */
const answerTimeoutMs = 40_000;

test("a page whose person is not logged in any more is loaded anew", async () => {
  let loads = 0;
  const order = {
    dataset: { page: "/company", version: "1", of: "0x1" },
    remove: () => undefined,
  };
  runInNewContext(script, {
    AbortController,
    setTimeout: () => undefined,
    document: { getElementById: () => order, addEventListener: () => undefined },
    fetch: async () => ({ status: 403 }),
    location: { reload: () => (loads += 1) },
  });
  await settle();
  assert.equal(loads, 1);
});

test("a page that learns nothing new pauses before it asks again, and one with news asks at once", async () => {
  const versions = ["1", "2", "2"];
  const asked: string[] = [];
  const pauses: { go: () => void; ms: number }[] = [];
  const order = {
    dataset: { page: "/verify", version: "1" },
    contains: () => false,
    replaceChildren: () => undefined,
  };
  const standing = { textContent: "Waiting.", remove: () => undefined };
  const freshStanding = { ...standing };
  const elementsOf = (version: string) => ({
    getElementById: (id: string) =>
      id === "order" ? { dataset: { version }, childNodes: [] } : freshStanding,
  });
  runInNewContext(script, {
    AbortController,
    document: {
      getElementById: (id: string) => (id === "order" ? order : standing),
      addEventListener: () => undefined,
    },
    DOMParser: class {
      parseFromString = () => elementsOf("2");
    },
    fetch: async (url: string) => {
      asked.push(url);
      if (url === "/verify") return { text: async () => "" };
      const version = versions.shift();
      // Further questions get no answer: a page that never pauses would ask for ever.
      if (version === undefined) return new Promise(() => undefined);
      return { status: 204, headers: new Headers({ "x-version": version }) };
    },
    setTimeout: (go: () => void, ms: number) => ms < answerTimeoutMs && pauses.push({ go, ms }),
  });
  standing.textContent = "Warten.";
  await settle();
  assert.deepEqual(asked.splice(0), ["/verify/changes?version=1"]);
  assert.equal(pauses[0]?.ms, 5000);
  pauses.shift()?.go();
  await settle();
  assert.deepEqual(asked, ["/verify/changes?version=1", "/verify", "/verify/changes?version=2"]);
  assert.equal(pauses.length, 1);
  assert.equal(standing.textContent, "Warten.", "what a translator made of it is not said twice");
});

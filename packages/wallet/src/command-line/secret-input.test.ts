import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { mock, test } from "node:test";
import { refuses } from "../../test/test-wallet.ts";
import { askNewSecret, askSecret, readSecretFile } from "./secret-input.ts";

/** Somebody at the terminal, who types these in turn. */
function typist(...typed: readonly (string | null)[]) {
  const asked: string[] = [];
  return {
    asked,
    ask: async (question: string) => typed[asked.push(question) - 1] ?? null,
  };
}

test("a passphrase that is being chosen is asked for twice, and taken where both are the same", async () => {
  const { ask, asked } = typist("correct horse", "correct horse");
  assert.equal(await askNewSecret("New passphrase: ", ask), "correct horse");
  assert.deepEqual(asked, ["New passphrase: ", "Repeat it: "]);
  await refuses(
    askNewSecret("New passphrase: ", typist("correct horse", "corect horse").ask),
    "invalid_input",
    /the two entries differ/,
  );
});

test("without a terminal nobody is asked a second time", async () => {
  const { ask, asked } = typist(null);
  assert.equal(await askNewSecret("New passphrase: ", ask), null);
  assert.equal(asked.length, 1);
});

test("nobody is asked on a terminal that was read to its end for another secret", async () => {
  const typed = Object.assign(Readable.from(["test test junk"]), { isTTY: true });
  await text(typed);
  const stdin = mock.getter(process, "stdin", () => typed as unknown as NodeJS.ReadStream);
  try {
    assert.equal(await askSecret("Passphrase: "), null);
  } finally {
    stdin.mock.restore();
  }
});

test("a secret comes by standard input without the line break at its end, and with all else", async () => {
  for (const [given, secret] of [
    [["correct horse", " battery\n"], "correct horse battery"],
    [["correct horse battery\r\n"], "correct horse battery"],
    [[" correct horse \n\n"], " correct horse \n"],
    [["0".repeat(4096)], "0".repeat(4096)],
  ] as const) {
    const piped = Readable.from(given) as unknown as NodeJS.ReadStream;
    const stdin = mock.getter(process, "stdin", () => piped);
    try {
      assert.equal(await readSecretFile("-"), secret);
    } finally {
      stdin.mock.restore();
    }
  }
});

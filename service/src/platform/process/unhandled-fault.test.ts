import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const place = new URL("unhandled-fault.ts", import.meta.url).href;
const faults = [
  ["thrown", "setImmediate(() => { throw error; });"],
  ["of a promise that nobody awaits", "void Promise.reject(error);"],
];

for (const [what, end] of faults)
  await test(`a fault that is ${what} ends the process, and is told without the row that it is about`, async () => {
    const program = `
      import { tellUnhandledFault } from ${JSON.stringify(place)};
      import { DatabaseError } from "pg";
      tellUnhandledFault({ logLevel: "info" });
      const said = 'duplicate key value violates unique constraint "person_mail_key"';
      const detail = "Key (mail)=(ada@example.com) already exists.";
      const error = Object.assign(new DatabaseError(said, 1, "error"), { code: "23505", detail });
      setInterval(() => undefined, 1000);
      ${end}`;
    const args = ["--conditions=source", "--input-type=module", "--eval", program];
    const child = spawn(process.execPath, args, { cwd: import.meta.dirname });
    const [out, err, exit] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "exit"),
    ]);
    assert.deepEqual([err, exit], ["", [1, null]]);
    const line = JSON.parse(out) as { level: string; msg: string; err: { code: string } };
    assert.deepEqual([line.level, line.msg], ["fatal", "the process ends by a fault"]);
    assert.equal(line.err.code, "23505");
    assert.doesNotMatch(out, /ada@/);
  });

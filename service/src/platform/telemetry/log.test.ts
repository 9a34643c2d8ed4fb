import assert from "node:assert/strict";
import { test } from "node:test";
import { DatabaseError } from "pg";
import { createLog, type Log } from "./log.ts";

function openLog(level: "info" | "error" = "info"): { log: Log; text: () => string } {
  let text = "";
  const destination = { write: (line: string): void => void (text += line) };
  return { log: createLog({ level, destination }), text: () => text };
}

const canary = "canary-5b1f2c7e";

test("a line is one JSON object with level, time, fields and a constant message", () => {
  const { log, text } = openLog();
  log.info({ requestId: "req_1", route: "/a/:id", status: 200, money: 5n }, "request");
  const line = JSON.parse(text()) as Record<string, unknown>;
  assert.deepEqual(
    [line["level"], line["msg"], line["requestId"], line["route"], line["status"], line["money"]],
    ["info", "request", "req_1", "/a/:id", 200, "5"],
  );
  assert.match(String(line["time"]), /^\d{4}-\d\d-\d\dT/);
  assert.equal(text().indexOf("\n"), text().length - 1);
});

test("a line below the level is not written", () => {
  const { log, text } = openLog("error");
  log.info({}, "request");
  assert.equal(text(), "");
});

const names =
  "authorization Authorization cookie set-cookie Set-Cookie code client_secret clientSecret refresh_token access_token id_token client_assertion signature claimSecret claim_secret password secret code_verifier apiKey private_key proxy-authorization DPoP token id_token_hint logout_token subject_token master_key mnemonic digits email phone body query";

for (const name of names.split(" ")) {
  test(`the field ${name} is hidden at every depth`, () => {
    const { log, text } = openLog();
    log.warn({ [name]: canary }, "top");
    log.warn({ request: { headers: { [name]: canary } } }, "deep");
    log.warn({ list: [{ [name]: [canary] }, { [name]: { inner: canary } }] }, "list");
    log.warn({ err: new Error("outer", { cause: { [name]: canary } }) }, "cause");
    assert.ok(!text().includes(canary), text());
    assert.equal(text().split("\n").length, 5);
  });
}

test("bytes are hidden, and what a parser quotes of its input", () => {
  const { log, text } = openLog();
  log.info({ nested: { data: Buffer.from("abc") } }, "bytes");
  assert.deepEqual((JSON.parse(text()) as { nested: unknown }).nested, { data: "[hidden]" });
  assert.throws(
    () => JSON.parse(`{"a": ${canary}`),
    (err) => {
      log.error({ err }, "parser");
      return true;
    },
  );
  assert.doesNotMatch(text(), /canary/);
});

const texts: [what: string, text: string, kept: string][] = [
  ["a query string", `https://id.example.com/a?code=${canary}&state=1`, "https://id.example.com/a"],
  ["a fragment", `https://id.example.com/a#token=${canary}`, "https://id.example.com/a"],
  ["the query of a path", `GET /oauth2/auth?x=${canary} failed`, "GET /oauth2/auth"],
  ["the query of a deep link", `svc:login?sess=${canary}&conn=a`, "svc:login"],
  ["a token", `refused eyJhbGciOi.${canary}.c2ln`, "refused"],
  ["a DPoP header", `sent DPoP ${canary}${canary}`, "sent DPoP"],
  ["a bearer token", `sent Bearer ${canary}`, "sent Bearer"],
  ["basic credentials", `sent authorization: basic ${canary}==`, "sent authorization"],
  ...["live", "test", "mgmt", "issuer"].map((kind): [string, string, string] => [
    `an API key of the kind ${kind}`,
    `used svc_${kind}_01${canary.replaceAll("-", "")}`,
    "used",
  ]),
];

for (const [what, content, kept] of texts) {
  test(`${what} in a text does not reach the log`, () => {
    const { log, text } = openLog();
    log.info({ url: content, nested: { list: [content] } }, "field");
    log.error({ err: new Error(content) }, "error");
    log.error({}, content);
    for (const secret of [canary, canary.replaceAll("-", "")])
      assert.ok(!text().includes(secret), text());
    assert.equal(text().split(kept).length - 1, 4);
    for (const line of text().trim().split("\n")) JSON.parse(line);
  });
}

test("a question mark in a text cuts nothing off", () => {
  const { log, text } = openLog();
  log.info({ note: "ready? a = b" }, "really?");
  assert.match(text(), /ready\? a = b.*really\?/);
});

test("an error keeps its kind, code and place, but nothing of what it was given", () => {
  const { log, text } = openLog();
  const quoted = `"${canary}${"a".repeat(5000)}"`;
  const failed = new DatabaseError(`invalid input syntax for type bigint: ${quoted}`, 1, "error");
  Object.assign(failed, { code: "22P02", detail: canary, where: canary, parameters: [canary] });
  log.error({ err: failed }, "a request failed");
  log.error(
    { err: Object.assign(new Error("down"), { code: "ECONNREFUSED", config: canary }) },
    "x",
  );
  const parse = (): unknown => JSON.parse(`{"secret": ${canary}}`);
  try {
    parse();
  } catch (error) {
    log.error({ err: error }, "unreadable");
  }
  assert.ok(!text().includes(canary), text());
  assert.match(text(), /22P02.*ECONNREFUSED/s);
  assert.match(text(), /log\.test\.ts/);
});

test("an error is told apart by its kind, and each of its causes by its own", () => {
  const { log, text } = openLog();
  class NodeAway extends Error {
    override name = "NodeAway";
  }
  const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
  const away = new NodeAway("no answer", { cause: refused });
  log.error(
    { err: new AggregateError([away, new TypeError("odd")], "two failed") },
    "a job failed",
  );
  const { err } = JSON.parse(text()) as { err: Record<string, unknown> };
  const kept = (given: unknown): unknown => {
    const { type, message, code, cause, errors } = given as Record<string, unknown>;
    return {
      type,
      message,
      ...(code === undefined ? {} : { code }),
      ...(cause === undefined ? {} : { cause: kept(cause) }),
      ...(Array.isArray(errors) ? { errors: errors.map(kept) } : {}),
    };
  };
  assert.deepEqual(kept(err), {
    type: "AggregateError",
    message: "two failed",
    errors: [
      {
        type: "NodeAway",
        message: "no answer",
        cause: { type: "Error", message: "connect", code: "ECONNREFUSED" },
      },
      { type: "TypeError", message: "odd" },
    ],
  });
});

test("an error, and that of closing after it, are both logged", async () => {
  const { log, text } = openLog();
  const closed = Promise.try(async () => {
    await using stack = new AsyncDisposableStack();
    stack.defer(() => {
      throw new Error("in use");
    });
    throw new TypeError("odd");
  });
  await closed.catch((error: unknown) => log.error({ err: error }, "a job failed"));
  assert.match(text(), /"errors":\[\{"type":"TypeError","message":"odd".*"message":"in use"/);
});

test("what somebody else wrote does not steer the terminal that shows the log", () => {
  const { log, text } = openLog();
  const said = "reverted: \u001b[2J\u009b2J\u007f\u202e\u2028\u00e9";
  log.error({ err: new Error(said) }, "the chain failed");
  assert.match(text(), /"reverted: \\u001b\[2J\\u009b2J\\u007f\\u202e\\u2028\u00e9"/);
  assert.equal((JSON.parse(text()) as { err: { message: string } }).err.message, said);
});

/** What a line tells of its error and where in the database it came from. */
function readPlace(line: string): unknown {
  const { err } = JSON.parse(line) as { err: Record<string, unknown> };
  return [err["message"], err["code"], err["table"], err["constraint"]];
}

test("the table and rule of a refusal by the database are logged, and a code that could be anything is not", () => {
  const { log, text } = openLog();
  const refused = new DatabaseError("a row is refused", 1, "error");
  Object.assign(refused, { code: "23514", table: "ledger_account", constraint: "a_check" });
  log.error({ err: refused }, "x");
  log.error({ err: Object.assign(new Error('no "such" way'), { code: `a code: ${canary}` }) }, "x");
  log.error({ err: Object.assign(new Error("x"), { code: "a".repeat(41), table: canary }) }, "x");
  assert.deepEqual(text().trim().split("\n").map(readPlace), [
    ["a row is refused", "23514", "ledger_account", "a_check"],
    ['no "such" way', undefined, undefined, undefined],
    ["x", undefined, undefined, undefined],
  ]);
});

test("deep, long and circular values are logged up to a bound", () => {
  const { log, text } = openLog();
  const ring: Record<string, unknown> = {};
  ring["again"] = ring;
  // The cut goes through its last character.
  const flood = `${"aa?".repeat(1_365)}😀${"aa?".repeat(30_000)}`;
  log.info(
    { ring, list: Array.from({ length: 60 }, (_, at) => at), none: null, flood, err: Error(flood) },
    "x",
  );
  const line = JSON.parse(text()) as { ring: unknown; list: number[]; none: null };
  const told = JSON.parse(text()) as { flood: string; err: { message: string } };
  assert.deepEqual([line.list.length, line.none], [50, null]);
  assert.deepEqual([told.flood.length, told.err.message.length], [4096, 4096]);
  assert.ok(told.flood.isWellFormed() && told.err.message.isWellFormed());
  assert.equal(JSON.stringify(line.ring), '{"again":'.repeat(6) + '"[hidden]"' + "}".repeat(6));
  const own = openLog();
  const fault = new Error("its own cause");
  fault.cause = fault;
  own.log.error({ err: fault }, "x");
  assert.equal(own.text().split("its own cause").length - 1, 6);
});

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Login } from "@svc/merchant";

import { openSessions } from "./sessions.ts";

const login = (subject: string, sid = "sid-1", approvedAt?: number): Login =>
  ({ subject, claims: { sid, auth_time: approvedAt } }) as unknown as Login;

test("tokens that were renewed meanwhile bring no ended session back", () => {
  const sessions = openSessions(() => 0);
  const id = sessions.open(login("alice"));
  sessions.renew(id, login("alice", "sid-2"));
  assert.equal(sessions.find(id)?.claims["sid"], "sid-2");
  sessions.close(id);
  sessions.renew(id, login("alice", "sid-3"));
  sessions.renew("made-up", login("mallory"));
  assert.deepEqual([sessions.find(id), sessions.find("made-up")], [null, null]);
});

test("a logout without a login that is told late ends what the person had then, and no login since", () => {
  const sessions = openSessions(() => 5000);
  const [before, same, undated, since] = [999, 1000, undefined, 1001].map((approvedAt) =>
    sessions.open(login("alice", `sid-${approvedAt}`, approvedAt)),
  ) as [string, string, string, string];
  const bob = sessions.open(login("bob", "sid-bob", 999));
  sessions.closeAll({ sub: "alice", endedAt: 1000 });
  for (const id of [before, same, undated]) assert.equal(sessions.find(id), null);
  for (const id of [since, bob]) assert.notEqual(sessions.find(id), null);
});

test("a logout of one login ends it whenever it is told", () => {
  const sessions = openSessions(() => 5000);
  const id = sessions.open(login("alice", "sid-1", 1001));
  sessions.closeAll({ sub: "alice", sid: "sid-1", endedAt: 1000 });
  assert.equal(sessions.find(id), null);
});

test("ten thousand people are logged in at once, and the oldest makes room for the next", () => {
  const sessions = openSessions(() => 0);
  const ids = Array.from({ length: 10_000 }, (_, at) => sessions.open(login(`person ${at}`)));
  const [first = "", second = ""] = ids;
  assert.equal(sessions.find(first)?.subject, "person 0");
  const next = sessions.open(login("another"));
  assert.deepEqual(
    [first, second, next].map((id) => sessions.find(id)?.subject),
    [undefined, "person 1", "another"],
  );
});

test("of the logins that the broker ended the last thousand open no session, and no more are remembered", () => {
  const sessions = openSessions(() => 0);
  for (let at = 0; at <= 1000; at += 1) sessions.closeAll({ sid: `sid ${at}`, endedAt: 0 });
  for (const sid of ["sid 1", "sid 1000"])
    assert.throws(() => sessions.open(login("alice", sid)), { code: "grant_refused" }, sid);
  assert.ok(sessions.open(login("alice", "sid 0")));
});

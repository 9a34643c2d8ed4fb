import assert from "node:assert/strict";
import { test } from "node:test";

import type { Login } from "@svc/merchant";

import { openSessions } from "./sessions.ts";

const login = (subject: string, sid = "sid-1"): Login =>
  ({ subject, claims: { sid } }) as unknown as Login;

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

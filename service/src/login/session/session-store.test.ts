import assert from "node:assert/strict";
import { after, test } from "node:test";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { addClient, addCode, openTestLogin } from "../test-login.ts";
import { endSession } from "./session-end-store.ts";
import { findSession, type FoundSession } from "./session-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());

test("a session is found while its idle time and its age are not over, to the second, and never once it has ended", async () => {
  const client = await addClient(login);
  const { sessionId, sessionSecret } = await addCode(login, client);
  const begun = login.clock.now();
  const findAfter = async (
    seconds: number,
    lasting: { idleSeconds?: number; absoluteSeconds?: number } = {},
  ): Promise<FoundSession | null> =>
    findSession(login.ctx.db, {
      secretSha256: sha256(sessionSecret),
      now: begun + seconds,
      idleSeconds: 1000,
      absoluteSeconds: 1000,
      clientId: client.id,
      ...lasting,
    });
  for (const lasting of [{ idleSeconds: 100 }, { absoluteSeconds: 100 }]) {
    assert.equal((await findAfter(99, lasting))?.id, sessionId);
    assert.equal(await findAfter(100, lasting), null, JSON.stringify(lasting));
  }
  await endSession(login.ctx.db, sessionId, begun);
  assert.equal(await findAfter(0), null);
});

import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  addClient,
  addCode,
  type Answer,
  answerOf,
  openTestLogin,
  redeem,
  refused,
} from "../test-login.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const client = await addClient(login);
const logoutPath = "/oauth2/sessions/logout";

/** Types that curl, .NET and scripts name beside nothing, and none. */
const types = ["application/json", "text/plain; charset=utf-8", undefined] as const;

async function sendNothing(
  url: string,
  headers: Record<string, string | undefined>,
): Promise<Answer> {
  const named = Object.entries(headers).filter(([, value]) => value !== undefined);
  const given = Object.fromEntries(named) as Record<string, string>;
  return answerOf(await login.http.inject({ method: "POST", url, headers: given }));
}

test("userinfo takes the token in the header of a POST that sends nothing, whatever type it names", async () => {
  const { body } = await redeem(login, client, await addCode(login, client));
  const authorization = `Bearer ${String(body["access_token"])}`;
  for (const type of types)
    for (const length of ["0", undefined]) {
      const headers = { authorization, "content-type": type, "content-length": length };
      const answer = await sendNothing("/userinfo", headers);
      assert.equal(answer.status, 200, `${type} ${length}: ${answer.text}`);
    }
});

test("a logout by POST needs no parameter, and so no body", async () => {
  for (const type of types) {
    const answer = await sendNothing(logoutPath, { "content-type": type });
    assert.equal(answer.status, 303, `${type}: ${answer.text}`);
    assert.equal(answer.headers["location"], `${logoutPath}?`);
  }
});

test("an endpoint that needs a form refuses a request without one, and names what an empty form lacks", async () => {
  const authorization = client.basic;
  for (const url of ["/oauth2/token", "/oauth2/revoke", "/oauth2/introspect"]) {
    for (const type of types)
      refused(
        await sendNothing(url, { authorization, "content-type": type }),
        400,
        "invalid_request",
      );
    const form = "application/x-www-form-urlencoded";
    const empty = await sendNothing(url, { authorization, "content-type": form });
    refused(empty, 400, "invalid_request");
    assert.match(String(empty.body["error_description"]), /^(?:grant_type|token) is missing$/);
  }
});

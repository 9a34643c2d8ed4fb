// What other sites would send to the forms of the login page, and what the page's own forms look like.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage } from "../login-flow.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function submit(action: string, headers: Record<string, string>): Promise<Response> {
  const page = await openPage(world.baseUrl, world.client);
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}/${action}`;
  return page.jar.fetch(url, { method: "POST", headers });
}

test("the page's own forms work although its policy makes browsers send Origin: null", async () => {
  const headers = { origin: "null", "sec-fetch-site": "same-origin" };
  for (const action of ["show-code", "restart", "continue"]) {
    const response = await submit(action, headers);
    assert.equal(response.status, 303, `${action}: ${await response.text()}`);
  }
});

test("forms of other sites are refused, however they dress", async () => {
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { origin: "null", "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site" },
    { origin: world.baseUrl, "sec-fetch-site": "cross-site" },
  ] as Record<string, string>[]) {
    for (const action of ["show-code", "restart", "continue", "finish"])
      assert.equal(
        (await submit(action, headers)).status,
        403,
        `${action} ${JSON.stringify(headers)}`,
      );
  }
});

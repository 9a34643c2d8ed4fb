// Webhooks as receivers check them who know nothing of our code.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import { openTestWebhooks, signingKey } from "../../service/src/webhooks/test-webhooks.ts";

test("the signatures are verified by the library of Standard Webhooks and by code written from the document", async () => {
  await using webhooks = await openTestWebhooks();
  const receiver = await webhooks.openReceiver();
  await webhooks.enqueue(webhooks.event({ url: receiver.url }));
  await webhooks.deliver();
  const [request] = receiver.received;
  assert.ok(request);
  const webhook = new Webhook(signingKey, { format: "raw" });
  const headers = request.headers as Record<string, string>;
  assert.deepEqual(webhook.verify(request.body, headers), JSON.parse(request.body));
  assert.throws(() => webhook.verify(`${request.body} `, headers));
  const [time = "", mac = ""] = String(headers["svc-signature"]).split(",");
  assert.equal(time, `t=${webhooks.ctx.clock.now()}`);
  const hmac = createHmac("sha256", Buffer.from(signingKey, "utf8"));
  const expected = hmac.update(`${time.slice(2)}.${request.body}`, "utf8").digest("hex");
  assert.equal(mac, `s=${expected}`);
});

// Webhooks as receivers check them who know nothing of our code.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import { Stripe } from "stripe";
import { rotateSecret } from "../../service/src/webhooks/endpoints.ts";
import {
  openTestWebhooks,
  type Received,
  signingKey,
  type TestWebhooks,
} from "../../service/src/webhooks/test-webhooks.ts";

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

test("our headers are spelled as the documents spell them, for receivers that look at capitals", async () => {
  await using webhooks = await openTestWebhooks();
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  await webhooks.enqueue(webhooks.event({ url: receiver.url }), webhooks.kybEvent());
  await webhooks.deliver();
  const ours = receiver.received.flatMap(({ headerNames }) =>
    headerNames.filter((name) => /^svc-/i.test(name)),
  );
  const both = ["Svc-Delivery-Attempt", "Svc-Event-Id"];
  assert.deepEqual(
    ours.toSorted((a, b) => a.localeCompare(b)),
    [...both, ...both, "Svc-KYB-Signature", "Svc-Signature"].toSorted((a, b) => a.localeCompare(b)),
  );
});

const toleranceSeconds = 300;

/** Which of the secrets Stripe's library accepts. */
function takenByStripe({ body, headers }: Received, secrets: readonly string[]): boolean[] {
  const stripe = new Stripe("sk_test_unused");
  const header = String(headers["svc-kyb-signature"]);
  return secrets.map((secret) => {
    try {
      const event = stripe.webhooks.constructEvent(body, header, secret, toleranceSeconds);
      return JSON.stringify(event) === JSON.stringify(JSON.parse(body));
    } catch {
      return false;
    }
  });
}

function takenByStandardWebhooks({ body, headers }: Received, secrets: readonly string[]) {
  return secrets.map((secret) => {
    try {
      const given = headers as Record<string, string>;
      new Webhook(secret, { format: "raw" }).verify(body, given);
      return true;
    } catch {
      return false;
    }
  });
}

/** Announces an event and returns how it arrives. */
async function arrivalOf(webhooks: TestWebhooks, received: readonly Received[]): Promise<Received> {
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver();
  const arrival = received.at(-1);
  assert.ok(arrival);
  return arrival;
}

for (const [name, taken] of [
  ["stripe", takenByStripe],
  ["standardwebhooks", takenByStandardWebhooks],
] as const)
  test(`the stock library ${name} takes every KYB delivery, before, during and after a rotation`, async () => {
    await using webhooks = await openTestWebhooks();
    const { ctx, clientDomainId } = webhooks;
    const { url, received } = await webhooks.openReceiver();
    const { secret: first } = await webhooks.register(url);
    const rotate = async (immediate: boolean): Promise<string> =>
      (await ctx.db.transaction(async (tx) => rotateSecret(ctx, tx, { clientDomainId, immediate })))
        .secret;
    assert.deepEqual(taken(await arrivalOf(webhooks, received), [first]), [true]);
    const second = await rotate(false);
    assert.deepEqual(taken(await arrivalOf(webhooks, received), [first, second]), [true, true]);
    const third = await rotate(true);
    const all = [first, second, third];
    assert.deepEqual(taken(await arrivalOf(webhooks, received), all), [false, false, true]);
    const last = await arrivalOf(webhooks, received);
    assert.deepEqual(taken({ ...last, body: `${last.body} ` }, all), [false, false, false]);
  });

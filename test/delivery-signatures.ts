// Checks deliveries as receivers do who know nothing of our code: by the stock libraries, and by code written from the
// service document alone. The time of the check is the one that the delivery itself names, because the time of a test
// world is moved; how far the two may differ has its own tests.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mock } from "node:test";
import { Webhook } from "standardwebhooks";
import { Stripe } from "stripe";

export interface SignedDelivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const toleranceSeconds = 300;

/** The stock library looks at the machine's clock. */
function atTime<T>(seconds: number, look: () => T): T {
  mock.timers.enable({ apis: ["Date"], now: seconds * 1000 });
  try {
    return look();
  } finally {
    mock.timers.reset();
  }
}

function checkStandard({ headers, body }: SignedDelivery, key: string): void {
  assert.equal(headers["webhook-id"], headers["svc-event-id"]);
  const verified = atTime(Number(headers["webhook-timestamp"]), () =>
    new Webhook(key, { format: "raw" }).verify(body, { ...headers }),
  );
  assert.deepEqual(verified, JSON.parse(body));
}

/** @throws {Error} where a merchant who has the package's signing key would refuse the delivery */
export function checkKycDelivery(delivery: SignedDelivery, signingKey: string): void {
  checkStandard(delivery, signingKey);
  const { headers, body } = delivery;
  const [, time = "", mac] =
    /^t=(\d+),s=([0-9a-f]{64})$/.exec(headers["svc-signature"] ?? "") ?? [];
  const expected = createHmac("sha256", signingKey).update(`${time}.${body}`).digest("hex");
  assert.equal(mac, expected, "Svc-Signature");
  assert.equal(time, headers["webhook-timestamp"]);
}

/** @throws {Error} where a merchant who has one of the endpoint's secrets, this one, would refuse the delivery */
export function checkKybDelivery(delivery: SignedDelivery, secret: string): void {
  checkStandard(delivery, secret);
  const { headers, body } = delivery;
  const header = headers["svc-kyb-signature"] ?? "";
  const time = Number(headers["webhook-timestamp"]);
  const event = atTime(time, () =>
    new Stripe("sk_test_unused").webhooks.constructEvent(body, header, secret, toleranceSeconds),
  );
  assert.deepEqual(event, JSON.parse(body));
}

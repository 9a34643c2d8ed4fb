// A merchant's receiver of webhooks: takes deliveries, answers as told, and waits for one event. When it closes, every
// delivery must have had the form that the document of the API describes, and a signature that the stock libraries accept
// under one of the secrets that the merchant was shown.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { checkKybDelivery, type SignedDelivery } from "./delivery-signatures.ts";
import { textHeaders } from "./order-traffic.ts";
import { patienceMs } from "./patience.ts";
import { checkWebhookForm } from "./webhook-forms.ts";

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly SignedDelivery[];
  /** @param text the body of its answers, by default empty */
  setStatus(status: number, text?: string): void;
  /** Adds the secret in an answer to PUT or `rotate-secret` to those that the check at the end accepts. */
  trust(secret: unknown): void;
  /** The first delivery of the event; waits for it. */
  arrivalOf(eventId: string): Promise<SignedDelivery>;
}

export async function openReceiver(): Promise<Receiver> {
  const received: SignedDelivery[] = [];
  const arrivals = new EventTarget();
  const secrets = new Set<string>();
  let [status, text] = [200, ""];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      received.push({ headers: textHeaders(request), body: Buffer.concat(chunks).toString() });
      response.writeHead(status).end(text);
      arrivals.dispatchEvent(new Event("arrival"));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/kyb`,
    received,
    setStatus(nextStatus, nextText = "") {
      [status, text] = [nextStatus, nextText];
    },
    trust: (secret) => void secrets.add(String(secret)),
    async arrivalOf(eventId) {
      const signal = AbortSignal.timeout(patienceMs);
      for (;;) {
        const found = received.find(({ headers }) => headers["svc-event-id"] === eventId);
        if (found !== undefined) return found;
        await once(arrivals, "arrival", { signal });
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      for (const { body } of received) checkWebhookForm(body);
      if (secrets.size > 0)
        for (const delivery of received) checkSignatures(delivery, [...secrets]);
    },
  };
}

/** @throws {AggregateError} if the delivery is signed with none of the secrets */
function checkSignatures(delivery: SignedDelivery, secrets: readonly string[]): void {
  const faults: unknown[] = [];
  for (const secret of secrets) {
    try {
      checkKybDelivery(delivery, secret);
      return;
    } catch (error) {
      faults.push(error);
    }
  }
  throw new AggregateError(faults, `nobody's delivery: ${delivery.body.slice(0, 200)}`);
}

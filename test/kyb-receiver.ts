// A merchant's end of webhooks: takes what comes, answers as told, and waits for one event.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

interface Delivered {
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Delivered[];
  setStatus(status: number): void;
  /** The first delivery of the event; waits for it. */
  arrivalOf(eventId: string): Promise<Delivered>;
}

const waitMs = 30_000;

export async function openReceiver(): Promise<Receiver> {
  const received: Delivered[] = [];
  const arrivals = new EventTarget();
  let status = 200;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      );
      received.push({ headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(status).end();
      arrivals.dispatchEvent(new Event("arrival"));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/kyb`,
    received,
    setStatus(next) {
      status = next;
    },
    async arrivalOf(eventId) {
      const signal = AbortSignal.timeout(waitMs);
      for (;;) {
        const found = received.find(({ headers }) => headers["svc-event-id"] === eventId);
        if (found !== undefined) return found;
        await once(arrivals, "arrival", { signal });
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

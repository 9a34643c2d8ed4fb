import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** What the confirmed orders of a round were anchored by. */
export interface Confirmed {
  readonly initiatedTxHash: string;
  readonly confirmTxHash: string;
}

/** Takes the webhooks of many merchants: every path is one. */
export interface KycReceiver extends AsyncDisposable {
  readonly url: string;
  /** Resolves when this many more orders were reported CONFIRMED. */
  expect(count: number): Promise<Confirmed[]>;
}

export async function openKycReceiver(): Promise<KycReceiver> {
  let missing = 0;
  let confirmed: Confirmed[] = [];
  let waiting = Promise.withResolvers<Confirmed[]>();
  const seen = new Set<string>();
  const note = (body: string): void => {
    const { event_id: id, data } = JSON.parse(body) as {
      event_id: string;
      data: Partial<Confirmed> & { status?: string };
    };
    const { status, initiatedTxHash, confirmTxHash } = data;
    if (status === "FAILED") return waiting.reject(new Error(`an order failed: ${body}`));
    if (status !== "CONFIRMED" || seen.has(id)) return;
    seen.add(id);
    confirmed.push({ initiatedTxHash: initiatedTxHash ?? "", confirmTxHash: confirmTxHash ?? "" });
    if (confirmed.length === missing) waiting.resolve(confirmed);
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => response.end("ok", () => note(Buffer.concat(parts).toString())));
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "localhost");
  await once(server, "listening");
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    async expect(count) {
      waiting = Promise.withResolvers();
      confirmed = [];
      missing = count;
      return waiting.promise;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

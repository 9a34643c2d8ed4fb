import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A merchant's endpoint for KYB events. */
export interface KybReceiver extends AsyncDisposable {
  readonly url: string;
  /** Resolves when this many more requests were reported to be so. */
  expect(count: number, status: "pending_approval" | "released"): Promise<void>;
}

export async function openKybReceiver(): Promise<KybReceiver> {
  let [missing, expected] = [0, ""];
  let waiting = Promise.withResolvers<void>();
  const seen = new Set<string>();
  const note = (body: string): void => {
    const { event, event_id: id } = JSON.parse(body) as { event: string; event_id: string };
    if (event.endsWith(".failed")) return waiting.reject(new Error(`a request failed: ${body}`));
    if (event !== expected || seen.has(id)) return;
    seen.add(id);
    missing -= 1;
    if (missing === 0) waiting.resolve();
  };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => response.end("ok", () => note(Buffer.concat(parts).toString())));
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/kyb`,
    async expect(count, status) {
      [missing, expected] = [count, `kyb.data_request.${status}`];
      waiting = Promise.withResolvers<void>();
      return waiting.promise;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

// What Node's own HTTP server costs without anything of ours: it answers every request with the bytes it was given.
import { createServer, type OutgoingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** Sent by the parent once. */
export interface BareAnswer {
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

process.once("message", ({ headers, body }: BareAnswer) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, headers);
    response.end(body);
  });
  server.listen(0, "localhost", () => process.send?.((server.address() as AddressInfo).port));
});
process.once("disconnect", () => process.exit());

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the range that the kernel takes the ports of connections from: a run opens tens of thousands of them. */
const [least, bound] = [20_000, 32_000];

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(least, bound);
    const server = createServer().listen(port, "localhost");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}

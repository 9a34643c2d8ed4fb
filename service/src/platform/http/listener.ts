import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Http } from "./http.ts";
import { lastAnswerOf } from "./last-answers.ts";

/** How long at most a connection stays open that has nothing left to wait for. */
const sweepMs = 100;
/**
 * How long idle connections stay open after the end was announced. A request that is on its way is still answered, and
 * the answer says that the connection is about to close; otherwise the request would be lost.
 */
const lingerMs = 300;

/** Where a process can be reached; closing soon stops accepting connections, and waits for the requests under way. */
export interface Listener extends AsyncDisposable {
  /** Cuts the connections that are still open. */
  cut(): void;
}

/** Listens at every address of `localhost`, or at the one that is given. */
export async function listen(
  http: Http,
  given: { readonly host: string; readonly port: number },
): Promise<Listener> {
  const [host = given.host, ...others] = await listAddresses(given.host);
  const connections = followConnections(http);
  const lingered = Promise.withResolvers<void>();
  http.addHook("preClose", async () => {
    for (const connection of connections) announceEnd(connection);
    if (connections.size > 0) await delay(lingerMs);
    lingered.resolve();
  });
  await http.listen({ host, port: given.port });
  const { port } = http.server.address() as AddressInfo;
  const besides = others.map(async (address) => listenBeside(http, { host: address, port }));
  const beside = await Promise.all(besides).catch(async (error: unknown) => {
    await http.close();
    throw error;
  });
  const doors = beside.filter((door) => door !== null);
  return {
    cut: () => http.server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      const closing = http.close();
      await Promise.race([lingered.promise, closing]);
      const sweeping = setInterval(() => sweep(http, connections), sweepMs);
      await Promise.all([closing, ...doors.map(closeDoor)]);
      clearInterval(sweeping);
    },
  };
}

function followConnections(http: Http): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  http.server.on("connection", (connection) => {
    connections.add(connection);
    connection.once("close", () => connections.delete(connection));
  });
  return connections;
}

/** RFC 9112 section 9.6: a server that is going to close a connection says so in its final answer. */
function announceEnd(connection: Socket): void {
  const answer = lastAnswerOf(connection);
  if (answer?.headersSent === false) answer.setHeader("connection", "close");
}

function sweep(http: Http, connections: ReadonlySet<Socket>): void {
  http.server.closeIdleConnections();
  // Node treats a connection without a byte as one whose request is on its way, but browsers open some that they never
  // use.
  for (const connection of connections) if (connection.bytesRead === 0) connection.destroy();
}

async function listAddresses(host: string): Promise<string[]> {
  if (host !== "localhost") return [host];
  const found = await lookup(host, { all: true });
  return [...new Set(found.map(({ address }) => address))];
}

const absentCodes = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/**
 * Accepts connections for the one HTTP server, so that its limits and its shutdown apply to all of them. Fastify itself
 * would give the second address a server of its own, which goes on until the first has answered everything.
 *
 * @returns null if the machine has no such address
 */
async function listenBeside(
  http: Http,
  at: { readonly host: string; readonly port: number },
): Promise<Server | null> {
  // The options with which an HTTP server opens its own.
  const options = { allowHalfOpen: true, noDelay: true };
  const door = createServer(options, (socket) => void http.server.emit("connection", socket));
  door.listen(at);
  return once(door, "listening").then(
    () => door,
    (error: NodeJS.ErrnoException) => {
      if (absentCodes.has(error.code ?? "")) return null;
      throw error;
    },
  );
}

async function closeDoor(door: Server): Promise<void> {
  door.close();
  await once(door, "close");
}

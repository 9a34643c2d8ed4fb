// Holds many open status streams, as the browsers of waiting people do, in a process of its own.
import { createConnection, type Socket } from "node:net";

export interface StreamRequest {
  readonly port: number;
  readonly streams: readonly { readonly path: string; readonly cookie: string }[];
}

const openedAtOnce = 64;
/** Connections per source address; more than the kernel's range of ports for one would hold. */
const perAddress = 20_000;

process.once("message", (request: StreamRequest) => {
  holdAll(request).then(
    (count) => process.send?.({ opened: count }),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(0));

const sockets: Socket[] = [];

async function holdAll({ port, streams }: StreamRequest): Promise<number> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < streams.length; at = next++) {
      const stream = streams[at];
      if (stream === undefined) return;
      const localAddress = `127.0.0.${1 + Math.floor(at / perAddress)}`;
      sockets.push(await open({ port, localAddress, ...stream }));
    }
  };
  await Promise.all(Array.from({ length: openedAtOnce }, worker));
  return sockets.length;
}

/** Settles with the first state; every later byte is dropped. */
async function open(stream: {
  port: number;
  localAddress: string;
  path: string;
  cookie: string;
}): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = createConnection({
    host: "127.0.0.1",
    port: stream.port,
    localAddress: stream.localAddress,
  });
  socket.write(
    `GET ${stream.path} HTTP/1.1\r\nHost: localhost:${stream.port}\r\nAccept: text/event-stream\r\nCookie: ${stream.cookie}\r\n\r\n`,
  );
  let head = "";
  const read = (part: Buffer): void => {
    head += part.toString("latin1");
    if (!head.startsWith("HTTP/1.1 200".slice(0, head.length)))
      reject(new Error(`a stream answered ${head.slice(0, 100)}`));
    if (!head.includes("data: ")) return;
    socket.off("data", read);
    socket.resume();
    resolve(socket);
  };
  socket.on("data", read);
  socket.on("error", reject);
  socket.on("close", () => reject(new Error("a stream was closed")));
  return promise;
}

// Bytes over a TCP connection, for tests of what no HTTP client would send or report.
import { once } from "node:events";
import { connect } from "node:net";

export interface RawConnection {
  send(text: string): void;
  /** The first part of what was answered. */
  readonly first: Promise<readonly string[]>;
  /** Everything that was answered, once the other side has closed. */
  readonly all: Promise<string>;
  cut(): void;
}

export async function openRawConnection(baseUrl: string): Promise<RawConnection> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  await once(socket, "connect");
  let text = "";
  socket.on("data", (part: string) => {
    text += part;
  });
  return {
    send: (bytes) => void socket.write(bytes),
    first: once(socket, "data"),
    all: once(socket, "end").then(() => text),
    cut: () => void socket.destroy(),
  };
}

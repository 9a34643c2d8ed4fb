import type { Socket } from "node:net";
import type * as Undici from "undici";

/** For all answers before the last one, and for everything that is neither a header nor the body. */
const slackBytes = 16 * 1024;
/** A byte that is sent as a chunk of its own takes six bytes; senders of whole chunks stay far below this. */
const bytesOfBodyByte = 8;

/** How many bytes an answer with a body and headers of these lengths may take on the wire, however it is framed. */
export function answerBytesMax(given: { headerBytes: number; bodyBytes: number }): number {
  return slackBytes + given.headerBytes + bytesOfBodyByte * given.bodyBytes;
}

/**
 * Connects as asked, and cuts off a connection that delivers more than this for one request. undici counts only headers
 * and body: an endless reason phrase, chunk extensions or interim answers would continue until the time is up.
 */
export function boundedConnector(
  undici: typeof Undici,
  options: Undici.buildConnector.BuildOptions,
  bytesMax: number,
): Undici.buildConnector.connector {
  const connect = undici.buildConnector(options);
  return (asked, callback) =>
    connect(asked, (...connected) => {
      const [fault, socket] = connected;
      if (fault === null && socket !== null)
        boundAnswers(socket, bytesMax, () => new undici.errors.ResponseExceededMaxSizeError());
      callback(...connected);
    });
}

/** Requests on a connection follow one another, so everything received since the last write belongs to one answer. */
function boundAnswers(socket: Socket, bytesMax: number, makeError: () => Error): void {
  let written = socket.bytesWritten;
  let readBefore = socket.bytesRead;
  socket.on("readable", () => {
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten;
      readBefore = socket.bytesRead - socket.readableLength;
    }
    if (socket.bytesRead - readBefore <= bytesMax) return;
    // What has arrived is read first, so that the caller learns how the answer began.
    queueMicrotask(() => socket.destroy(makeError()));
  });
}

import type { Socket } from "node:net";
import type * as Undici from "undici";

/** Of all answers before the last one, and of everything that is neither a header nor the body. */
const slackBytes = 16 * 1024;
/** A byte that comes as a chunk of its own takes six; whoever sends whole chunks stays far below. */
const bytesOfBodyByte = 8;

/** What an answer with a body and headers of these lengths may take on its way, whatever it is made of. */
export function answerBytesMax(given: { headerBytes: number; bodyBytes: number }): number {
  return slackBytes + given.headerBytes + bytesOfBodyByte * given.bodyBytes;
}

/**
 * Connects as asked, and cuts a connection off that brings more than this for one request. undici counts headers and
 * body alone: an endless reason phrase, extensions of chunks or interim answers go on until the time is up.
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

/** Requests on a connection come one after the other, so an answer is what came since something was written. */
function boundAnswers(socket: Socket, bytesMax: number, makeError: () => Error): void {
  let written = socket.bytesWritten;
  let readBefore = socket.bytesRead;
  socket.on("readable", () => {
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten;
      readBefore = socket.bytesRead - socket.readableLength;
    }
    if (socket.bytesRead - readBefore <= bytesMax) return;
    // What has come is read first, so that whoever asked learns how the answer began.
    queueMicrotask(() => socket.destroy(makeError()));
  });
}

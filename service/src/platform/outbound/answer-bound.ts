import type { Socket } from "node:net";
import type * as Undici from "undici";
import { dropInterimAnswers } from "./interim-answers.ts";

/** Allowance for interim answers, and for everything that is neither a header nor the body. */
const slackBytes = 16 * 1024;
/** A byte that is sent as a chunk of its own takes six bytes; senders of whole chunks stay far below this. */
const bytesOfBodyByte = 8;

interface AnswerLengths {
  readonly headerBytes: number;
  readonly bodyBytes: number;
}

/** How many bytes an answer with a body and headers of these lengths may take on the wire, however it is framed. */
function answerBytesMax({ headerBytes, bodyBytes }: AnswerLengths): number {
  return slackBytes + headerBytes + bytesOfBodyByte * bodyBytes;
}

/**
 * Connects as asked, and cuts off a connection that delivers more for one request than the longest such answer. undici
 * counts only headers and body: an endless reason phrase, chunk extensions or interim answers would continue until the
 * time is up. Interim answers do not reach undici.
 */
export function boundedConnector(
  undici: typeof Undici,
  options: Undici.buildConnector.BuildOptions,
  longest: AnswerLengths,
): Undici.buildConnector.connector {
  const bytesMax = answerBytesMax(longest);
  const connect = undici.buildConnector(options);
  return (asked, callback) =>
    connect(asked, (...connected) => {
      const [fault, socket] = connected;
      if (fault === null && socket !== null) {
        boundAnswers(socket, bytesMax, () => new undici.errors.ResponseExceededMaxSizeError());
        dropInterimAnswers(socket, longest.headerBytes);
      }
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
    // The bytes that have arrived are read first, so that the caller learns how the answer began.
    queueMicrotask(() => socket.destroy(makeError()));
  });
}

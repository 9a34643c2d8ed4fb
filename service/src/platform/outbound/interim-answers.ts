import type { Socket } from "node:net";

/** How an interim answer begins. 101 is none: it changes the protocol, which nobody asked for. */
const interim = /^HTTP\/1\.[01] 1(?!01)\d\d[ \r]/;
/** Stands in for bytes that have not come yet, up to the length that the pattern reads. */
const shortest = "HTTP/1.1 100 ";
const headEnd = "\r\n\r\n";

/**
 * Drops interim answers, such as `100 Continue`, in front of the answer itself. We ask for none, but some servers and
 * proxies send one to every POST, and a client has to be able to skip it (RFC 9110 section 15.2). undici skips all but
 * that one, for which it ends the connection.
 *
 * Must listen before undici does. An interim answer that has not ended within `headBytesMax` is left to undici, which
 * refuses it.
 */
export function dropInterimAnswers(socket: Socket, headBytesMax: number): void {
  let written = 0;
  let isInFront = true;
  let held: Buffer = Buffer.alloc(0);
  socket.on("readable", () => {
    // Requests on a connection follow one another, so what comes after a write begins an answer.
    if (socket.bytesWritten !== written) {
      written = socket.bytesWritten;
      isInFront = true;
    }
    if (!isInFront) return;
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    held = afterInterimAnswers(Buffer.concat([held, chunk]));
    if (mayBeInterim(held) && held.length <= headBytesMax) return;
    isInFront = false;
    socket.unshift(held);
    held = Buffer.alloc(0);
  });
}

function afterInterimAnswers(bytes: Buffer): Buffer {
  let rest = bytes;
  while (mayBeInterim(rest)) {
    const end = rest.indexOf(headEnd);
    if (end < 0) break;
    rest = rest.subarray(end + headEnd.length);
  }
  return rest;
}

/** Whether the bytes begin with an interim answer, or are too few to tell that they do not. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString("latin1", 0, shortest.length);
  return interim.test(start + shortest.slice(start.length));
}

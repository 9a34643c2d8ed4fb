import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Ctx } from "../context.ts";
import { lastAnswerOf } from "./last-answers.ts";
import { endReading } from "./lossless-close.ts";
import { Problem, type Reason } from "./problems.ts";

// An import would load the HTTP client of Node too: 60 ms of a start, and 13 MiB.
const { STATUS_CODES } = process.getBuiltinModule("node:http");

/** Reasons by the error code of Node's parser, for faults before there is a request. */
const reasons: Readonly<Record<string, Reason>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
  HPE_HEADER_OVERFLOW: "headers_too_large",
};

/** Bytes that never became a request. */
interface Broken {
  readonly error: Error & { readonly code?: string };
  readonly socket: Socket;
  readonly requestId: string;
}

/**
 * Answers bytes that never became a request with the error envelope, after the answers that are due, and closes their
 * connection. Inside an answer that has begun, or after one that was given before its request was complete, the
 * envelope would be taken for a part of that answer, or for the answer to another request; then the connection is just
 * closed.
 */
export function answerBrokenRequest(
  ctx: Pick<Ctx, "log" | "metrics">,
  { error, socket, requestId }: Broken,
): void {
  // Every further part that arrives is reported as broken too.
  if (ending.has(socket)) return;
  ending.add(socket);
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const problem = new Problem(reasons[error.code ?? ""] ?? "malformed_request");
  const answer = lastAnswerOf(socket);
  const end = (): void => {
    if (socket.writable) socket.write(write(problem, requestId));
    endReading(socket);
  };
  const turn = turnOf(socket, answer);
  if (turn === "now") end();
  else if (turn === "next") answer?.once("finish", end);
  else socket.destroySoon();
  const { status, reason } = problem;
  // A request whose body was cut off has a route, and is counted there.
  if (answer?.req.complete !== false)
    ctx.metrics.httpRequestDuration.observe(
      { route: "unknown", method: "unknown", status: String(status) },
      0,
    );
  ctx.log.info({ requestId, status, reason }, "a request could not be read");
}

/** Connections that end, or will after the answers that are due. */
const ending = new WeakSet<Socket>();

/** When the envelope can be sent, given the last answer of the connection. */
function turnOf(socket: Socket, answer: ServerResponse | undefined): "now" | "next" | "never" {
  if (answer === undefined) return "now";
  const { req, headersSent, writableEnded, writableFinished } = answer;
  if (!req.complete) return answer.socket === socket && !headersSent ? "now" : "never";
  if (writableFinished) return "now";
  return headersSent && !writableEnded ? "never" : "next";
}

function write({ status, reason, message }: Problem, requestId: string): string {
  const body = JSON.stringify({
    success: false,
    error: { code: status, reason, message, requestId },
  });
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    `X-Request-Id: ${requestId}`,
    "X-Content-Type-Options: nosniff",
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}

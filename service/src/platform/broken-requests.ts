import { type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Ctx } from "./context.ts";
import { Problem, type Reason } from "./problems.ts";

/** What Node's parser finds wrong before there is a request, by its code. */
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
 * Answers them in the error envelope, and closes their connection. What it does not answer it cuts off: within another
 * answer, or ahead of one that is due, the envelope would be taken for a part of that.
 */
export function answerBrokenRequest(
  ctx: Pick<Ctx, "log" | "metrics">,
  { error, socket, requestId }: Broken,
): void {
  if (error.code === "ECONNRESET" || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return;
  }
  const problem = new Problem(reasons[error.code ?? ""] ?? "malformed_request");
  socket.write(write(problem, requestId));
  socket.destroySoon();
  const { status, reason } = problem;
  ctx.metrics.httpRequestDuration.observe(
    { route: "unknown", method: "unknown", status: String(status) },
    0,
  );
  ctx.log.info({ requestId, status, reason }, "broken request");
}

/** Of each connection the last request's answer; answers are sent in the order of their requests. */
const lastAnswers = new WeakMap<Socket, ServerResponse>();

/** Notes the answers of a server, for {@link answerBrokenRequest}. */
export function noteAnswers(server: Server): void {
  server.prependListener("request", (request, response) => {
    lastAnswers.set(request.socket, response);
  });
}

function isAnswering(socket: Socket): boolean {
  const answer = lastAnswers.get(socket);
  if (answer === undefined || answer.writableFinished) return false;
  const isItsBody = answer.socket === socket && !answer.headersSent && !answer.req.complete;
  return !isItsBody;
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
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}

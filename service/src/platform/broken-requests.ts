import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { Problem, type Reason } from "./problems.ts";

/** What Node's parser finds wrong before there is a request, by its code. */
const reasons: Readonly<Record<string, Reason>> = {
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
  HPE_HEADER_OVERFLOW: "headers_too_large",
};

/** Answers bytes that never became a request in the error envelope, and closes their connection. */
export function answerBrokenRequest(
  error: Error & { readonly code?: string },
  socket: Socket,
  requestId: string,
): void {
  if (error.code !== "ECONNRESET" && socket.writable)
    socket.write(write(new Problem(reasons[error.code ?? ""] ?? "malformed_request"), requestId));
  socket.destroySoon();
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

import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const lastAnswers = new WeakMap<Socket, ServerResponse>();

/** Notes the answers of a server, for {@link lastAnswerOf}. */
export function noteAnswers(server: Server): void {
  server.prependListener("request", (request, response) => {
    lastAnswers.set(request.socket, response);
  });
}

/**
 * The answer to the last request of a connection, even if it has been sent. Answers are sent in the order of the
 * requests.
 */
export function lastAnswerOf(socket: Socket): ServerResponse | undefined {
  return lastAnswers.get(socket);
}

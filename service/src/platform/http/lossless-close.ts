import type { Server } from "node:http";
import { Socket } from "node:net";
import { lastAnswerOf } from "./last-answers.ts";

/** How long what arrives after the last answer is read: as long as a request may take. */
const restMs = 60_000;

/**
 * Makes a server that closes a connection after an early answer, given before its request was complete, read the rest
 * of that request. Node would close at once.
 */
export function closeLosslessly(server: Server): void {
  server.on("connection", (connection: Socket) => {
    connection.destroySoon = closeBehindRequest;
  });
}

function closeBehindRequest(this: Socket): void {
  const { req: request } = lastAnswerOf(this) ?? {};
  if (request?.complete !== false) {
    Socket.prototype.destroySoon.call(this);
    return;
  }
  // The framework stops reading where it refuses a body.
  request.once("end", () => this.destroySoon()).resume();
  endReading(this);
}

/**
 * Closes this side of a connection once everything is sent, and drops what still arrives until the other side has closed
 * too (RFC 9112 section 9.6): unread bytes would reset the connection, often before their sender reads the answer.
 */
export function endReading(connection: Socket): void {
  connection.end();
  const limit = setTimeout(() => connection.destroy(), restMs).unref();
  connection.once("close", () => clearTimeout(limit));
}

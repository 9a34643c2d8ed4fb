import { gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";

/** Whether the browser takes gzip; one that names it with `q=0` does not (RFC 9110 section 12.5.3). */
export const takesGzip = ({ headers }: FastifyRequest): boolean =>
  (headers["accept-encoding"] ?? "")
    .split(",")
    .some((coding) => /^\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/i.test(coding));

/** Level 3 costs half the CPU of the usual 6, and a twentieth more bytes. */
const level = 3;

/**
 * Sends a login's page, compressed if the browser takes that and `mayPack`: the page is more than half of what a login
 * loads.
 *
 * @param of.mayPack false for a page that shows the two digits: its compressed size would reveal a part of them
 */
export function sendPage(
  html: string,
  of: { request: FastifyRequest; reply: FastifyReply; mayPack: boolean },
): FastifyReply {
  const { request, reply, mayPack } = of;
  void reply.header("vary", "accept-encoding");
  return mayPack && takesGzip(request)
    ? reply.header("content-encoding", "gzip").send(gzipSync(html, { level }))
    : reply.send(html);
}

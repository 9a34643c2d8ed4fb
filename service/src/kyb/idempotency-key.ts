import type { FastifyRequest } from "fastify";
import { invalidRequest } from "../platform/http/problems.ts";

const keyPattern = /^[\x21-\x7e]{1,255}$/;

/** The `Idempotency-Key` of a call; null if it has none. @throws {Problem} invalid_request */
export function readIdempotencyKey({ headers }: Pick<FastifyRequest, "headers">): string | null {
  const key = headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key !== "string" || !keyPattern.test(key))
    throw invalidRequest("Idempotency-Key has 1 to 255 visible ASCII characters");
  return key;
}

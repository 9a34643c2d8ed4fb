import { Problem } from "../platform/problems.ts";

/** Ends a check of what a caller gave. @throws {Problem} invalid_request, always */
export function refuse(fault: string): never {
  throw new Problem("invalid_request", { message: `Invalid Request: ${fault}` });
}

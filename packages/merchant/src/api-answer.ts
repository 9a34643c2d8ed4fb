import { openMembers, type Members } from "./members.ts";
import { MerchantError } from "./merchant-error.ts";

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Asks for the next page; absent on the last. */
  nextCursor?: string;
}

/** Opens an answer of the broker, or an object in one. A member that is wrong is thrown as `response_invalid`. */
export function openAnswer(answer: Record<string, unknown>): Members {
  return openMembers(answer, invalid);
}

/** The error for an answer that is not as documented. @param reason names the member */
export function invalid(reason: string): MerchantError {
  return new MerchantError("response_invalid", { reason });
}

/** Reads a member that is a list of objects. */
export function readList<T>(answer: Members, name: string, read: (item: Members) => T): T[] {
  return answer.records(name).map((item) => read(openAnswer(item)));
}

export function readPage<T>(answer: Members, read: (item: Members) => T): Page<T> {
  return {
    items: readList(answer, "items", read),
    ...(answer.has("nextCursor") && { nextCursor: answer.text("nextCursor") }),
  };
}

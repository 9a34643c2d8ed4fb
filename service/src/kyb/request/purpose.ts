import { isBlank, isShowable, lengthOf } from "@svc/protocol";
import { invalidRequest } from "../../platform/http/problems.ts";

const purposeLength = { min: 8, max: 280 };

/**
 * The reason why a business is asked, as its members are shown it: 8 to 280 characters, not counting surrounding blanks
 * among the 8, and not only characters that nobody can see.
 *
 * @throws {Problem} invalid_request
 */
export function readPurpose(text: string): string {
  const { min, max } = purposeLength;
  if (lengthOf(text.trim()) < min || lengthOf(text) > max)
    throw invalidRequest(`purpose has ${min} to ${max} characters`);
  if (isBlank(text)) throw invalidRequest("purpose shows nothing");
  return readShown("purpose", text);
}

/** Reads a text that people are shown. @throws {Problem} invalid_request */
export function readShown(name: string, text: string): string {
  if (!isShowable(text.replaceAll("\n", "")))
    throw invalidRequest(`${name} holds characters that cannot be shown`);
  return text;
}

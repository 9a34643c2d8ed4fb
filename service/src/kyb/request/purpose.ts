import { isBlank, isShowable, lengthOf } from "@svc/protocol";
import { invalidRequest } from "../../platform/http/problems.ts";

const purposeLength = { min: 8, max: 280 };

/**
 * Checks the purpose of a request, which members are shown: 8 to 280 characters, surrounding blanks not counted among
 * the 8, and not only invisible ones.
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

/** Checks a text that people are shown; line breaks are allowed. @throws {Problem} invalid_request */
export function readShown(name: string, text: string): string {
  if (!isShowable(text.replaceAll("\n", "")))
    throw invalidRequest(`${name} holds characters that cannot be shown`);
  return text;
}

import { isFieldName } from "../attributes.ts";
import type { FieldName } from "../attributes.ts";
import {
  base64OfBytes,
  bytesOfBase64,
  bytesOfText,
  hasTooManyValues,
  hexOfBytes,
  isRecord,
  textOfBytes,
} from "../encoding.ts";
import type { Hex32 } from "../encoding.ts";
import { bytesOfSize } from "../words.ts";
import { orFault, ResultRefused, textMember } from "./members.ts";
import type { Members, ResultFault } from "./members.ts";

/** One delivered field, decoded: the triple that is kept and later asked about. */
export interface Info {
  field: FieldName;
  /** The value as text; for an image its Base64. */
  data: string;
  /** 32 random bytes. */
  pepper: Hex32;
}

const infosLengthMax = 8_388_608;

/**
 * Writes `infos`: Base64 of the JSON array of triples whose `data` and `pepper` are Base64 in turn.
 *
 * @throws {TypeError} when a pepper is not 32 bytes
 */
export function encodeInfos(infos: readonly Info[]): string {
  const triples = infos.map(({ field, data, pepper }) => ({
    field,
    data: base64OfBytes(bytesOfText(data)),
    pepper: base64OfBytes(bytesOfSize(pepper, 32)),
  }));
  return base64OfBytes(bytesOfText(JSON.stringify(triples)));
}

/** Reads `infos`. A field appears once, by its concrete name. Never throws. */
export function decodeInfos(text: string): readonly Info[] | { fault: ResultFault } {
  return orFault(() => readInfos(text));
}

/** The member as it is sent: only its Base64 is checked here, its content by `decodeInfos`. */
export function infosMember(members: Members, name: string): string {
  const text = textMember(members, name, infosLengthMax);
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) {
    throw new ResultRefused(name, "is not Base64");
  }
  return text;
}

function readInfos(text: string): readonly Info[] {
  if (text.length > infosLengthMax) throw new ResultRefused("infos", "is too long");
  const bytes = bytesOfBase64(text);
  const json = bytes === null ? null : textOfBytes(bytes);
  if (bytes === null || json === null) throw new ResultRefused("infos", "is not Base64 of UTF-8");
  if (hasTooManyValues(bytes)) throw new ResultRefused("infos", "holds too many values");
  let triples: unknown;
  try {
    triples = JSON.parse(json);
  } catch {
    throw new ResultRefused("infos", "is not JSON");
  }
  if (!Array.isArray(triples)) throw new ResultRefused("infos", "is not a list");
  const infos = triples.map((triple: unknown, index) => readInfo(triple, `infos[${index}]`));
  if (new Set(infos.map(({ field }) => field)).size < infos.length) {
    throw new ResultRefused("infos", "names a field more than once");
  }
  return infos;
}

function readInfo(triple: unknown, at: string): Info {
  if (!isRecord(triple)) throw new ResultRefused(at, "is not an object");
  const { field, data, pepper } = triple;
  if (typeof field !== "string" || !isFieldName(field)) {
    throw new ResultRefused(`${at}.field`, "is not a field of the catalogue");
  }
  const value = typeof data === "string" ? textOfBase64(data) : null;
  if (value === null) throw new ResultRefused(`${at}.data`, "is not Base64 of UTF-8");
  const bytes = typeof pepper === "string" ? bytesOfBase64(pepper) : null;
  if (bytes?.length !== 32) throw new ResultRefused(`${at}.pepper`, "is not Base64 of 32 bytes");
  return { field, data: value, pepper: hexOfBytes(bytes) };
}

function textOfBase64(text: string): string | null {
  const bytes = bytesOfBase64(text);
  return bytes === null ? null : textOfBytes(bytes);
}

import type { Address } from "../address.ts";
import { isRecord } from "../encoding.ts";
import { TypedDataFault, compileTypes } from "../typed-data-types.ts";
import { hashTypedData } from "../typed-data.ts";
import type { TypedDataDocument } from "../typed-data.ts";
import { readRoute } from "./connection.ts";
import type { ReturnRoute } from "./connection.ts";
import { LinkRefused, requiredSeconds, requiredText } from "./parameters.ts";
import type { Pairs, Parameters } from "./parameters.ts";

/** `svc:td`: sign an EIP-712 document, which has been hashed once to make sure that it can be. */
export interface TdLink extends ReturnRoute {
  action: "td";
  identity?: Address;
  /** `data`: all of the document but its types. */
  data: Pick<TypedDataDocument, "domain" | "primaryType" | "message">;
  /** The parameter `td`. */
  types: TypedDataDocument["types"];
  /** `dl`, Unix seconds. */
  deadline: number;
}

export function readTd(parameters: Parameters): TdLink {
  const { domain, primaryType, message, ...others } = requiredJson(parameters, "data");
  const types = requiredJson(parameters, "td");
  const stranger = Object.keys(others)[0];
  if (stranger !== undefined) throw new LinkRefused("data", `holds the unknown member ${stranger}`);
  if (!isRecord(domain)) throw new LinkRefused("data", "domain is not an object");
  if (typeof primaryType !== "string") throw new LinkRefused("data", "primaryType is not a text");
  if (!isRecord(message)) throw new LinkRefused("data", "message is not an object");
  const data = { domain, primaryType, message };
  return {
    action: "td",
    data,
    types: hashableTypes(data, types),
    deadline: requiredSeconds(parameters, "dl"),
    ...readRoute(parameters, "td"),
  };
}

export function writeTd(link: TdLink): Pairs {
  const { domain, primaryType, message } = link.data;
  return [
    ["data", JSON.stringify({ domain, primaryType, message })],
    ["td", JSON.stringify(link.types)],
    ["conn", link.connection],
    ["dl", String(link.deadline)],
    ["type", link.returnType],
  ];
}

/** The types reduced to what is hashed, once the whole document was hashed with them. */
function hashableTypes(data: TdLink["data"], text: unknown): TypedDataDocument["types"] {
  try {
    const types = Object.fromEntries(compileTypes(text));
    hashTypedData({ ...data, types });
    return types;
  } catch (fault) {
    if (!(fault instanceof TypedDataFault)) throw fault;
    throw new LinkRefused(fault.member.startsWith("types") ? "td" : "data", fault.message);
  }
}

function requiredJson(parameters: Parameters, name: string): Record<string, unknown> {
  const text = requiredText(parameters, name);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new LinkRefused(name, "is not JSON");
  }
  if (!isRecord(value)) throw new LinkRefused(name, "is not a JSON object");
  return value;
}

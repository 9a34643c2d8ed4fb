// For thousands of calls: once a single answer has closed its connection, Node's fetch opens a new one for each call.
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { patienceMs } from "./patience.ts";

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

const withoutBody = new Set([204, 304]);

/** Sends these headers and no others of its own choice; returns any answer, redirects too. */
export async function askPlainly(
  url: string,
  { method = "GET", headers = {}, body }: Asked = {},
): Promise<Response> {
  const sent = request(url, { method, headers, signal: AbortSignal.timeout(patienceMs) });
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const content = await buffer(answer);
  const { statusCode: status = 0 } = answer;
  const lines = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new Response(withoutBody.has(status) ? null : content, { status, headers: lines });
}

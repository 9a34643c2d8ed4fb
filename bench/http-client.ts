// HTTP over kept connections, with as little of its own as possible: the driver shares the machine with what it drives.
import { once } from "node:events";
import {
  Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
} from "node:http";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface HttpCall {
  readonly method?: "GET" | "POST";
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const timeoutMs = 30_000;

async function send(url: string, call: HttpCall = {}): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const { method = "GET", headers = {}, body } = call;
  const outgoing = request(url, {
    agent,
    method,
    timeout: timeoutMs,
    headers:
      body === undefined ? headers : { "content-length": Buffer.byteLength(body), ...headers },
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    // The other side closes idle connections, perhaps in the very moment in which one is used again.
    if (outgoing.reusedSocket && error.code === "ECONNRESET") resolve(send(url, call));
    else reject(error);
  });
  outgoing.on("timeout", () =>
    outgoing.destroy(new Error(`${method} ${url} took more than ${timeoutMs} ms`)),
  );
  outgoing.on("response", (response) => {
    const parts: Buffer[] = [];
    response.on("data", (part: Buffer) => parts.push(part));
    response.on("error", reject);
    response.on("end", () =>
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: Buffer.concat(parts).toString(),
      }),
    );
  });
  outgoing.end(body);
  return promise;
}

/** @throws Error when the answer has another status: a benchmark of failures measures nothing */
export async function sendExpecting(
  status: number,
  url: string,
  call: HttpCall = {},
): Promise<HttpAnswer> {
  const answer = await send(url, call);
  if (answer.status !== status)
    throw new Error(
      `${call.method ?? "GET"} ${url} answered ${answer.status} instead of ${status}: ${answer.body.slice(0, 300)}`,
    );
  return answer;
}

export function closeConnections(): void {
  agent.destroy();
}

/** An open stream of server-sent events. */
export interface EventStream extends AsyncDisposable {
  /** Settles with the first event from now on that fits. */
  next(fits: (data: string) => boolean): Promise<string>;
}

/** Opens a stream of events on a connection of its own. */
export async function followEvents(
  url: string,
  headers: OutgoingHttpHeaders,
): Promise<EventStream> {
  const outgoing = request(url, {
    agent: false,
    headers: { accept: "text/event-stream", ...headers },
  }).end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}`);
  const listeners = new Set<(data: string) => void>();
  let rest = "";
  response.on("data", (part: Buffer) => {
    const lines = (rest + part.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((each) => each.startsWith("data: ")))
      for (const listener of listeners) listener(line.slice(6));
  });
  return {
    async next(fits) {
      const { promise, resolve } = Promise.withResolvers<string>();
      const listener = (data: string): void => {
        if (!fits(data)) return;
        listeners.delete(listener);
        resolve(data);
      };
      listeners.add(listener);
      return promise;
    },
    async [Symbol.asyncDispose]() {
      outgoing.destroy();
      response.destroy();
    },
  };
}

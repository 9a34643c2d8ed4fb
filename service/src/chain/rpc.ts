import { unescape } from "node:querystring";
import { isRecord } from "@svc/protocol";
import { Agent, errors, request as send } from "undici";
import { AnswerTooLong, NodeAway, RpcError } from "./node.ts";
import { isOfLimit } from "./refusal.ts";

/** Far more than the receipts of a few dozen transactions need. */
const responseBytesMax = 16 * 1024 * 1024;

/** A server that the operator configured and that speaks JSON-RPC 2.0 over HTTP. */
export interface Rpc {
  /**
   * One call. Calls of the same turn of the event loop are sent as one batch, so that one node answers them in one
   * state. Never retries: the caller knows whether that makes sense.
   *
   * @throws {RpcError} if the answer is an error; {@link NodeAway} if there is no answer in time, or the server limits
   * calls
   */
  request(method: string, params: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

interface RpcOptions {
  readonly timeoutMs: number;
  readonly batchMax: number;
  readonly name: string;
}

/**
 * @param options.timeoutMs for one HTTP request as a whole, including the connection and the body of the answer
 * @param options.batchMax calls in one HTTP request; 1 for servers that accept no batches
 * @param options.name how errors name the server, since its URL may hold a secret
 */
export function openRpc(url: string, options: RpcOptions): Rpc {
  const { origin, pathname, search, username, password } = new URL(url);
  const hide = openHiding(url);
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (username !== "" || password !== "") {
    const secret = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    headers["authorization"] = `Basic ${Buffer.from(secret).toString("base64")}`;
  }
  const agent = new Agent({ maxResponseSize: responseBytesMax, allowH2: false });
  const exchange: Exchange = async (calls) => {
    // Outside of the try: a call that cannot be serialized is no failure of the server.
    const body = JSON.stringify(calls);
    let status = 0;
    try {
      const answer = await send(`${origin}${pathname}${search}`, {
        method: "POST",
        headers,
        body,
        dispatcher: agent,
        signal: AbortSignal.timeout(options.timeoutMs),
      });
      if (answer.statusCode === 429) {
        await answer.body.dump();
        throw new Error("it limits calls (status 429)");
      }
      status = answer.statusCode;
      // Whatever the status: some nodes send JSON-RPC errors with 400 or 500. Anything else is refused later.
      return { status, body: await answer.body.json() };
    } catch (error) {
      const cause = error instanceof Error ? error : new Error("unknown");
      const isTooLong = cause instanceof errors.ResponseExceededMaxSizeError;
      const Fault = isTooLong ? AnswerTooLong : NodeAway;
      // The parser's own message quotes the body, which may hold a secret.
      const fault =
        cause instanceof SyntaxError ? `its answer (status ${status}) is no JSON` : cause.message;
      throw new Fault(`${options.name} did not answer: ${fault}`, { cause });
    }
  };
  const request = openBatches(exchange, { ...options, hide });
  return { request, close: async () => agent.destroy() };
}

/** Shorter parts of a URL are words, such as a version or the name of a network. */
const secretLengthMin = 8;

/**
 * Servers may quote a key that they do not accept, and their messages are logged and passed on to callers of the relay.
 *
 * @returns a function that replaces the secrets of the URL in a text
 */
function openHiding(url: string): (text: string) => string {
  const { pathname, searchParams, username, password } = new URL(url);
  const parts = [...pathname.split("/"), ...searchParams.values(), username, password];
  const spellings = parts.flatMap((part) => [part, unescape(part)]);
  const secrets = spellings.filter((part) => part.length >= secretLengthMin);
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "[hidden]"), text);
}

type Exchange = (calls: unknown) => Promise<{ readonly status: number; readonly body: unknown }>;

interface Peer extends RpcOptions {
  /** See {@link openHiding}. */
  readonly hide: (text: string) => string;
}

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** Collects the calls of one turn of the event loop into batches. */
function openBatches(exchange: Exchange, peer: Peer): Rpc["request"] {
  const { batchMax } = peer;
  let gathered: Call[] = [];
  const flush = (): void => {
    const calls = gathered;
    gathered = [];
    for (let from = 0; from < calls.length; from += batchMax)
      void exchangeBatch(exchange, calls.slice(from, from + batchMax), peer);
  };
  return async (method, params) =>
    new Promise((resolve, reject) => {
      if (gathered.length === 0) setImmediate(flush);
      gathered.push({ method, params, resolve, reject });
    });
}

async function exchangeBatch(
  exchange: Exchange,
  calls: readonly Call[],
  peer: Peer,
): Promise<void> {
  const bodies = calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
  try {
    const { status, body } = await exchange(bodies.length === 1 ? bodies[0] : bodies);
    const answers = Array.isArray(body) ? (body as unknown[]) : [body];
    // Some servers return the id as a string.
    const byId = new Map(answers.filter(isRecord).map((each) => [String(each["id"]), each]));
    calls.forEach((call, id) =>
      settle(call, byId.get(`${id}`) ?? answers.find(isErrorForAll), { ...peer, status }),
    );
  } catch (error) {
    for (const call of calls) call.reject(error);
  }
}

/** The answer to a batch that is refused as a whole: one error without an id. */
function isErrorForAll(answer: unknown): answer is Record<string, unknown> {
  return isRecord(answer) && (answer["id"] ?? null) === null && isRecord(answer["error"]);
}

function settle(
  call: Call,
  answer: Record<string, unknown> | undefined,
  { name, hide, status }: Peer & { readonly status: number },
): void {
  const error = answer?.["error"];
  if (isRecord(error)) {
    const message = typeof error["message"] === "string" ? error["message"] : "unknown";
    const data = hideIn(error["data"], hide);
    const cause = new RpcError(codeOf(error), hide(message).slice(0, 500), data);
    const isLimit = isOfLimit(cause);
    call.reject(
      isLimit ? new NodeAway(`${name} did not answer: ${cause.message}`, { cause }) : cause,
    );
  } else if (answer !== undefined && "result" in answer) {
    call.resolve(answer["result"]);
  } else {
    call.reject(new NodeAway(`${name} did not answer as JSON-RPC (status ${status})`));
  }
}

/** JSON-RPC's internal error, for servers whose code is no integer: the relay passes codes on, and they must be. */
const internalCode = -32_603;

function codeOf({ code }: Record<string, unknown>): number {
  const given = Number(code ?? internalCode);
  return Number.isSafeInteger(given) ? given : internalCode;
}

function hideIn(data: unknown, hide: Peer["hide"]): unknown {
  if (data === undefined) return undefined;
  return JSON.parse(JSON.stringify(data), (_, value: unknown) =>
    typeof value === "string" ? hide(value) : value,
  );
}

import { connect, type Socket } from "node:net";
import { isRecord } from "@svc/protocol";
import { NodeAway, RpcError } from "./node.ts";

/** JSON-RPC 2.0 over a Unix socket, one line per message. */
export interface Ipc {
  request(method: string, params: readonly unknown[]): Promise<unknown>;
  /** All calls in one message; the node may work on them concurrently. @returns results or errors in the same order */
  batch(
    calls: readonly (readonly [method: string, params: readonly unknown[]])[],
  ): Promise<unknown[]>;
  /** Resolves when the connection is gone, whoever ended it. */
  readonly closed: Promise<void>;
  close(): void;
}

const timeoutMs = 30_000;
/** Half of V8's limit for a string. The longest answer is a dump of the whole state. */
const answerCharactersMax = 2 ** 28;
/** How much of a longer answer is kept: enough to find the call that it belongs to. */
const beginningCharacters = 200;
/** The code with which nodes themselves refuse an answer that would be too long (EIP-1474). */
const limitExceededCode = -32_005;

interface Waiting {
  readonly ids: readonly number[];
  readonly timer: NodeJS.Timeout;
  resolve(answers: readonly Record<string, unknown>[]): void;
  reject(error: Error): void;
}

/** @throws {NodeAway} if nothing listens at the path */
export async function openIpc(path: string): Promise<Ipc> {
  const socket = await connectTo(path);
  const waiting = new Map<number, Waiting>();
  let nextId = 1;
  const fail = (): void => {
    const lost = new Set(waiting.values());
    waiting.clear();
    for (const each of lost) {
      clearTimeout(each.timer);
      each.reject(new NodeAway("the connection to the chain's node broke"));
    }
  };
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<void>();
  socket.on("error", () => undefined);
  socket.on("close", () => {
    fail();
    resolveClosed();
  });
  readLines(socket, (line, isWhole) => {
    try {
      if (isWhole) settleLine(waiting, line);
      else refuseLong(waiting, line);
    } catch {
      // Neither JSON nor attributable: what follows cannot be trusted either.
      socket.destroy();
    }
  });
  const send = async (
    calls: readonly (readonly [string, readonly unknown[]])[],
  ): Promise<readonly Record<string, unknown>[]> => {
    if (socket.destroyed) throw new NodeAway("the connection to the chain's node is closed");
    const bodies = calls.map(([method, params]) => ({
      jsonrpc: "2.0",
      id: nextId++,
      method,
      params,
    }));
    const ids = bodies.map(({ id }) => id);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        for (const id of ids) waiting.delete(id);
        reject(new NodeAway("the chain's node did not answer in time"));
      }, timeoutMs);
      const entry: Waiting = { ids, timer, resolve, reject };
      for (const id of ids) waiting.set(id, entry);
      socket.write(`${JSON.stringify(bodies.length === 1 ? bodies[0] : bodies)}\n`);
    });
  };
  return {
    request: async (method, params) =>
      againWhenOvertaken(async () => {
        const [answer] = await send([[method, params]]);
        return resultOf(answer);
      }),
    async batch(calls) {
      if (calls.length === 0) return [];
      const answers = await send(calls);
      return answers.map((answer) => {
        try {
          return resultOf(answer);
        } catch (error) {
          return error;
        }
      });
    },
    closed,
    close: () => socket.destroy(),
  };
}

async function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(socket));
    socket.once("error", (cause) =>
      reject(new NodeAway("the chain's node cannot be reached", { cause })),
    );
  });
}

/** Splits the stream into lines. Of a line that is too long only the beginning is passed on, with `isWhole` false. */
function readLines(socket: Socket, onLine: (line: string, isWhole: boolean) => void): void {
  let parts: string[] = [];
  let beginning = "";
  let length = 0;
  const take = (piece: string): void => {
    length += piece.length;
    beginning += piece.slice(0, beginningCharacters - beginning.length);
    if (length > answerCharactersMax) parts = [];
    else parts.push(piece);
  };
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const pieces = chunk.split("\n");
    const rest = pieces.pop() ?? "";
    for (const piece of pieces) {
      take(piece);
      const isWhole = length <= answerCharactersMax;
      onLine(isWhole ? parts.join("") : beginning, isWhole);
      [parts, beginning, length] = [[], "", 0];
    }
    take(rest);
  });
}

/** Fails the call whose answer is too long; the connection stays usable. @throws if the beginning has no id */
function refuseLong(waiting: Map<number, Waiting>, beginning: string): void {
  const id = /"id":(\d+)/.exec(beginning)?.[1];
  if (id === undefined) throw new Error("an answer without an id");
  const entry = waiting.get(Number(id));
  if (entry === undefined) return;
  clearTimeout(entry.timer);
  for (const each of entry.ids) waiting.delete(each);
  entry.reject(new RpcError(limitExceededCode, "the answer is too long"));
}

function settleLine(waiting: Map<number, Waiting>, line: string): void {
  if (line.trim() === "") return;
  const message: unknown = JSON.parse(line);
  const answers = (Array.isArray(message) ? message : [message]).filter(isRecord);
  const entry = answers.map(({ id }) => waiting.get(Number(id))).find((each) => each !== undefined);
  if (entry === undefined) return;
  clearTimeout(entry.timer);
  for (const id of entry.ids) waiting.delete(id);
  const byId = new Map(answers.map((each) => [Number(each["id"]), each]));
  entry.resolve(entry.ids.map((id) => byId.get(id) ?? {}));
}

const overtakenTriesMax = 5;

/** Retries a call that fails because a block was mined meanwhile: anvil looks up its newest block in two steps. */
async function againWhenOvertaken(ask: () => Promise<unknown>): Promise<unknown> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      const isOvertaken =
        error instanceof RpcError && error.message.startsWith("BlockOutOfRangeError");
      if (!isOvertaken || tries === overtakenTriesMax) throw error;
    }
  }
}

/** @throws {RpcError} | {NodeAway} */
function resultOf(answer: Record<string, unknown> | undefined): unknown {
  const error = answer?.["error"];
  if (isRecord(error))
    throw new RpcError(
      Number(error["code"]),
      String(error["message"]).slice(0, 500),
      error["data"],
    );
  if (answer === undefined || !("result" in answer))
    throw new NodeAway("the chain's node gave no answer");
  return answer["result"];
}

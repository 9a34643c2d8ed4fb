import { Type } from "../platform/http/schema.ts";
import type { FastifyRequest } from "fastify";
import { callerAddressOf, limitNetworkOf } from "../platform/http/client-address.ts";
import type { Http } from "../platform/http/http.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import { bodyReasons, refusals } from "../platform/http/refusals.ts";
import type { ChainContext } from "./context.ts";

/** Room for a transaction of 128 KiB in hex. */
const bodyBytesMax = 512 * 1024;
const callsMax = 50;
const limitPerSecond = 50;
const limitBurst = 500;
const defaultPorts: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/**
 * `POST /w/chain`: JSON-RPC 2.0 for wallets and verifiers, without a session. Only for reading and for signed
 * transactions; a browser may call it only from the wallet's origin or the service's own.
 */
export function chainRoutes(ctx: ChainContext, scope: Http): void {
  scope.post(
    "/w/chain",
    {
      bodyLimit: bodyBytesMax,
      // Before the request waits for its turn among the large answers, with its body in memory: so limits come first.
      preHandler: async (request) => {
        checkPlace(ctx, request);
        await limitCalls(ctx, callerAddressOf(ctx, request), callsOf(request.body).length);
      },
      // A key of its own, so that these and the other large answers to the network do not delay each other.
      config: { largeAnswerOf: (request) => `chain:${networkOf(ctx, request)}` },
      schema: {
        operationId: "callChain",
        summary: "Call the chain (JSON-RPC 2.0)",
        description: `Send one call, or a list of at most ${callsMax}. A call may use at most 10 million gas; a search for logs may span at most 10,000 blocks. Calls that compute, and calls with long answers, take turns. A call gets the error -32005 if too many wait, or if the answers to one request exceed 4 MiB together. Outside \`dev\`, a transaction on the embedded chain pays at least one gwei per unit of gas.`,
        tags: ["wallet"],
        body: Type.Unknown(),
        response: {
          200: Type.Unknown({ description: "The answer, or a list with one for each call." }),
          ...refusals(...bodyReasons, "forbidden", "rate_limited"),
        },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { answerCalls } = await import("./relay.ts");
      const answers = await answerCalls(ctx, callsOf(body), networkOf(ctx, request));
      void reply.type("application/json; charset=utf-8");
      return Array.isArray(body) ? `[${answers.join(",")}]` : answers[0];
    },
  );
}

function callsOf(body: unknown): readonly unknown[] {
  const calls: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (calls.length === 0 || calls.length > callsMax)
    throw invalidRequest(`a list holds 1 to ${callsMax} calls`);
  return calls;
}

function networkOf(ctx: ChainContext, request: FastifyRequest): string {
  return limitNetworkOf(callerAddressOf(ctx, request));
}

/**
 * A page of another site must not reach the chain through somebody's browser, neither under its own host name (DNS
 * rebinding) nor by a request that needs no preflight.
 */
function checkPlace(ctx: ChainContext, request: FastifyRequest): void {
  const { origin, host } = request.headers;
  const { baseUrl, walletOrigin, profile } = ctx.config;
  const own = new URL(baseUrl);
  const isOurs = origin === undefined || origin === walletOrigin || origin === own.origin;
  // Several processes share one base address; in `dev` each has a port of its own on this machine.
  const isLocal =
    profile === "dev" && /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(host ?? "");
  if (!isOurs || (!isLocal && !isNameOf(own, host))) throw new Problem("forbidden");
}

/** Whether `Host` names the service: case-insensitive, a default port may be left out (RFC 9110 section 4.2.3). */
function isNameOf({ protocol, hostname, port }: URL, host = ""): boolean {
  const ownPort = port === "" ? defaultPorts[protocol] : port;
  const named = host.toLowerCase();
  return named === `${hostname}:${ownPort}` || (port === "" && named === hostname);
}

/** Each call of a list counts. */
async function limitCalls(ctx: ChainContext, address: string, cost: number): Promise<void> {
  const limit = { perSecond: limitPerSecond, burst: limitBurst, address, cost };
  await takeOrRefuse(ctx, `wallet:chain:${limitNetworkOf(address)}`, limit);
}

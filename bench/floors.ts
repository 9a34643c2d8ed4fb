import { fork } from "node:child_process";
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import type { BareAnswer } from "./peers/bare-server.ts";
import { type HttpAnswer, sendExpecting } from "./http-client.ts";
import { forEachOf, median, times } from "./load.ts";
import { cpuMsBetween, readCpu } from "./process-accounts.ts";
import type { Row } from "./row.ts";

const rounds = 3;
const requests = 16_000;
const warmUpRequests = 48_000;
const signatures = 1_000;
/** As long as what is signed of an access token. */
const signedBytes = 600;

/** The cost without any code of ours: lower bounds for other rows. */
export async function benchFloors(answer: HttpAnswer): Promise<Row[]> {
  return [...(await benchBareHttp(answer)), benchSignatures()];
}

function floor(name: string, ours: number): Row {
  return { name: `floor: ${name}`, unit: "ms", ours, peer: null, target: { kind: "printed" } };
}

/** Node's HTTP server alone, asked as the others are, with the answer that the service gives. */
async function benchBareHttp({ headers, body }: HttpAnswer): Promise<Row[]> {
  const child = fork(new URL("./peers/bare-server.ts", import.meta.url), {
    execArgv: ["--conditions=source"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const listening = once(child, "message");
  child.send({ headers, body } satisfies BareAnswer);
  const [port] = (await listening) as [number];
  const ask = async (count: number, concurrency: number): Promise<number> => {
    const before = readCpu([child.pid ?? 0]);
    await forEachOf(times(count), concurrency, async () =>
      sendExpecting(200, `http://localhost:${port}/`),
    );
    return cpuMsBetween(before, readCpu([child.pid ?? 0])) / count;
  };
  await ask(warmUpRequests, 8);
  const costs: Record<1 | 8, number[]> = { 1: [], 8: [] };
  for (let round = 0; round < rounds; round++)
    for (const concurrency of [1, 8] as const)
      costs[concurrency].push(await ask(requests, concurrency));
  const exit = once(child, "exit");
  child.disconnect();
  await exit;
  return [
    floor("bare node:http with the bytes of JWKS, one at a time", median(costs[1])),
    floor("bare node:http with the bytes of JWKS, eight at a time", median(costs[8])),
  ];
}

/** What a login and a refresh sign: an id token and an access token. */
function benchSignatures(): Row {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const input = randomBytes(signedBytes);
  const makeAll = (): void => {
    for (let made = 0; made < signatures; made++) sign("sha256", input, privateKey);
  };
  makeAll();
  const before = process.cpuUsage();
  makeAll();
  const { user, system } = process.cpuUsage(before);
  return floor("two RS256 signatures of a refresh", (2 * (user + system)) / 1000 / signatures);
}

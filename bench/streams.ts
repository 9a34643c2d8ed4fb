import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { newIdentity } from "../test/raw-wallet.ts";
import {
  approveAtBroker,
  type Broker,
  type BrokerPage,
  claimAtBroker,
  openBrokerPage,
  readDigits,
} from "./broker.ts";
import { followEvents } from "./http-client.ts";
import { forEachOf, median, percentile, times } from "./load.ts";
import { residentBytes } from "./process-accounts.ts";
import type { Row } from "./row.ts";
import type { StreamRequest } from "./stream-holder.ts";

export const streamsCount = 10_000;
const warmUpPages = 1000;
const pushes = 200;
/** How long temporary memory has to be collected; what is left then counts. */
const settleMs = 2000;

/** What a waiting page costs in memory while many wait, and how fast one of them hears of its approval. */
export async function benchStreams(
  broker: Broker,
  report: (line: string) => void,
  count = streamsCount,
): Promise<Row[]> {
  await forEachOf(times(warmUpPages), 8, async () => openBrokerPage(broker));
  const before = residentBytes(broker.pid);
  report(`opening ${count} pages`);
  const pages = await forEachOf(times(count), 8, async () =>
    toStream(broker, await openBrokerPage(broker)),
  );
  const withPages = residentBytes(broker.pid);
  report(`opening ${count} status streams`);
  await using holder = await holdStreams({
    port: Number(new URL(broker.baseUrl).port),
    streams: pages,
  });
  await delay(settleMs);
  const withStreams = residentBytes(broker.pid);
  report(`approving ${pushes} logins`);
  const pushedMs = await forEachOf(times(pushes), 1, async () => timePush(broker));
  return [
    {
      name: `an idle status stream, of ${count}`,
      unit: "KiB",
      ours: (withStreams - withPages) / holder.count / 1024,
      peer: null,
      target: { kind: "at-most", most: 20 },
    },
    {
      name: "the same with its page",
      unit: "KiB",
      ours: (withStreams - before) / count / 1024,
      peer: null,
      target: { kind: "printed" },
    },
    {
      name: `approval to event with ${count} open, median (wall)`,
      unit: "ms",
      ours: median(pushedMs),
      peer: null,
      target: { kind: "printed" },
    },
    {
      name: `approval to event with ${count} open, p99 (wall)`,
      unit: "ms",
      ours: percentile(pushedMs, 0.99),
      peer: null,
      target: { kind: "printed" },
    },
  ];
}

function toStream(broker: Broker, page: BrokerPage): StreamRequest["streams"][number] {
  const path = `/oauth2/login/${page.loginId}/events`;
  return { path, cookie: page.browser.cookieFor(`${broker.baseUrl}${path}`) };
}

interface StreamHolder extends AsyncDisposable {
  readonly count: number;
}

async function holdStreams(request: StreamRequest): Promise<StreamHolder> {
  const child = fork(new URL("./stream-holder.ts", import.meta.url), {
    execArgv: ["--conditions=source"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exit = once(child, "exit");
  const opened = once(child, "message");
  child.send(request);
  const outcome = await Promise.race([opened, exit]);
  const [answer] = outcome as [{ opened?: number } | number | null];
  if (answer === null || typeof answer === "number" || answer.opened !== request.streams.length)
    throw new Error("the streams did not open");
  return {
    count: answer.opened,
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await exit;
    },
  };
}

/** From the wallet's call to the event in the browser. */
async function timePush(broker: Broker): Promise<number> {
  const page = await openBrokerPage(broker);
  const { path, cookie } = toStream(broker, page);
  await using events = await followEvents(`${broker.baseUrl}${path}`, { cookie });
  const claimed = await claimAtBroker(page, newIdentity());
  const approval = await readDigits(broker, page, claimed);
  const approved = events.next((data) => data.includes('"approved"'));
  const startedAt = performance.now();
  const answered = approveAtBroker(claimed, approval);
  await approved;
  const tookMs = performance.now() - startedAt;
  await answered;
  return tookMs;
}

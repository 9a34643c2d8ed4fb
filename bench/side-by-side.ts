import { median } from "./load.ts";
import type { Cost } from "./party.ts";
import type { Row, Target } from "./row.ts";
import type { Batch, LoginCosts, Turns } from "./turns.ts";

const rounds = 3;
const concurrencies = [1, 8] as const;
type Concurrency = (typeof concurrencies)[number];

/** Operations of one batch; enough that a batch takes seconds, and that garbage and background work even out. */
const batchSizes = {
  logIn: 1000,
  introspect: 8000,
  readUserinfo: 8000,
  readDiscovery: 16_000,
  readKeys: 16_000,
};

/** Batches of the full size that are not counted, until V8 has compiled the hot code. */
const warmUpBatches = 3;

/** What one batch of each kind cost, for one party. */
interface Reading {
  readonly logIn: LoginCosts;
  readonly refresh: Cost;
  readonly introspect: Cost;
  readonly readUserinfo: Cost;
  readonly readDiscovery: Cost;
  readonly readKeys: Cost;
}

type Readings = Record<Concurrency, Reading[]>;

export interface SideBySide {
  readonly ours: Readings;
  readonly peers: Readings;
}

/** Lets both do the same, batch by batch in turn; who begins changes from round to round. */
export async function runSideBySide(
  [ours, peers]: readonly [Turns, Turns],
  { vacuum, report }: { vacuum: () => Promise<void>; report: (line: string) => void },
): Promise<SideBySide> {
  for (let batch = 0; batch < warmUpBatches; batch++) {
    report(`warm-up ${batch + 1} of ${warmUpBatches}`);
    await readBoth([ours, peers], 8);
    await vacuum();
  }
  const result: SideBySide = { ours: { 1: [], 8: [] }, peers: { 1: [], 8: [] } };
  for (let round = 0; round < rounds; round++) {
    for (const concurrency of concurrencies) {
      report(`round ${round + 1} of ${rounds}, ${concurrency} at a time`);
      const isOursFirst = round % 2 === 0;
      const [first, second] = await readBoth(
        isOursFirst ? [ours, peers] : [peers, ours],
        concurrency,
      );
      result.ours[concurrency].push(isOursFirst ? first : second);
      result.peers[concurrency].push(isOursFirst ? second : first);
    }
  }
  return result;
}

async function readBoth(
  both: readonly [Turns, Turns],
  concurrency: Concurrency,
): Promise<[Reading, Reading]> {
  const one = async <Result>(
    operations: number,
    turn: (turns: Turns, batch: Batch) => Promise<Result>,
  ): Promise<[Result, Result]> => {
    const batch = { operations, concurrency };
    return [await turn(both[0], batch), await turn(both[1], batch)];
  };
  const logIn = await one(batchSizes.logIn, async (turns, batch) => turns.logIn(batch));
  const refresh = await one(batchSizes.logIn, async (turns, batch) => turns.refresh(batch));
  const introspect = await one(batchSizes.introspect, async (turns, batch) =>
    turns.introspect(batch),
  );
  const readUserinfo = await one(batchSizes.readUserinfo, async (turns, batch) =>
    turns.readUserinfo(batch),
  );
  const readDiscovery = await one(batchSizes.readDiscovery, async (turns, batch) =>
    turns.readDiscovery(batch),
  );
  const readKeys = await one(batchSizes.readKeys, async (turns, batch) => turns.readKeys(batch));
  const at = (index: 0 | 1): Reading => ({
    logIn: logIn[index],
    refresh: refresh[index],
    introspect: introspect[index],
    readUserinfo: readUserinfo[index],
    readDiscovery: readDiscovery[index],
    readKeys: readKeys[index],
  });
  return [at(0), at(1)];
}

type Pick = (reading: Reading) => number;

const modeNames: Record<Concurrency, string> = { 1: "one at a time", 8: "eight at a time" };

/** The medians of the rounds as rows, judged. */
export function rowsOf({ ours, peers }: SideBySide): Row[] {
  const rowsFor = (concurrency: Concurrency): Row[] => {
    const mid = (readings: Readings, pick: Pick): number => median(readings[concurrency].map(pick));
    const compare = (name: string, pick: Pick, target: Target): Row => ({
      name: `${name}, ${modeNames[concurrency]}`,
      unit: "ms",
      ours: mid(ours, pick),
      peer: mid(peers, pick),
      target,
    });
    return [
      compare("authorize to token, page included", ({ logIn }) => logIn.login.serverMs, {
        kind: "times-cheaper",
        least: 2,
      }),
      compare("of it authorization request and page", ({ logIn }) => logIn.page.serverMs, {
        kind: "printed",
      }),
      {
        ...compare("wallet's part of a login", ({ logIn }) => logIn.wallet?.serverMs ?? 0, {
          kind: "at-most",
          most: 1,
        }),
        peer: null,
      },
      {
        ...compare("page's status after the claim", ({ logIn }) => logIn.status?.serverMs ?? 0, {
          kind: "printed",
        }),
        peer: null,
      },
      compare("everything of a login together", ({ logIn }) => wholeOf(logIn, "serverMs"), {
        kind: "printed",
      }),
      compare("PostgreSQL, authorize to token", ({ logIn }) => logIn.login.databaseMs, {
        kind: "share-of-peer",
        most: 0.5,
      }),
      compare("PostgreSQL, everything of a login", ({ logIn }) => wholeOf(logIn, "databaseMs"), {
        kind: "printed",
      }),
      compare("refresh with rotation", ({ refresh }) => refresh.serverMs, {
        kind: "times-cheaper",
        least: 2,
      }),
      compare("introspection", ({ introspect }) => introspect.serverMs, {
        kind: "times-cheaper",
        least: 3,
      }),
      compare("userinfo", ({ readUserinfo }) => readUserinfo.serverMs, {
        kind: "times-cheaper",
        least: 3,
      }),
      compare("discovery", ({ readDiscovery }) => readDiscovery.serverMs, {
        kind: "times-cheaper",
        least: 2,
      }),
      compare("JWKS", ({ readKeys }) => readKeys.serverMs, { kind: "times-cheaper", least: 2 }),
    ];
  };
  return [...concurrencies.flatMap(rowsFor), ...callRows(ours, peers)];
}

function wholeOf({ login, wallet, status }: LoginCosts, figure: keyof Cost): number {
  return login[figure] + (wallet?.[figure] ?? 0) + (status?.[figure] ?? 0);
}

/** Timers of the service ask the database too, about once a second: a share of a call that is not the login's. */
const timerShare = 0.05;

/** Without a peer to compare with. */
function alone(row: Row): Row {
  return { ...row, peer: null };
}

function callRows(ours: Readings, peers: Readings): Row[] {
  const calls = (readings: Readings, pick: Pick): number => median(readings[8].map(pick));
  const row = (name: string, pick: Pick, most: number | null): Row => {
    const count = calls(ours, pick);
    const target: Target = most === null ? { kind: "printed" } : { kind: "at-most", most };
    return {
      name,
      unit: "calls",
      ours: count - Math.floor(count) <= timerShare ? Math.floor(count) : count,
      peer: calls(peers, pick),
      target,
    };
  };
  return [
    row("database calls, authorize to token", ({ logIn }) => logIn.login.databaseCalls, 5),
    alone(row("database calls, wallet's part", ({ logIn }) => logIn.wallet?.databaseCalls ?? 0, 2)),
    alone(
      row(
        "database calls, page's status after the claim",
        ({ logIn }) => logIn.status?.databaseCalls ?? 0,
        null,
      ),
    ),
    row("database calls, refresh", ({ refresh }) => refresh.databaseCalls, 1),
    row("database calls, introspection", ({ introspect }) => introspect.databaseCalls, 1),
    row("database calls, userinfo", ({ readUserinfo }) => readUserinfo.databaseCalls, 1),
  ];
}

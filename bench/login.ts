import { benchQr } from "./qr.ts";
import { openBrokerTurns } from "./broker-turns.ts";
import { audience, openBrokerPage, startBroker } from "./broker.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { benchFloors } from "./floors.ts";
import { sendExpecting } from "./http-client.ts";
import { startPeer } from "./peer.ts";
import { openPeerTurns } from "./peer-turns.ts";
import { residentBytes } from "./process-accounts.ts";
import type { Row } from "./row.ts";
import { rowsOf, runSideBySide } from "./side-by-side.ts";
import { benchStarts } from "./starts.ts";
import { benchStreams, streamsCount } from "./streams.ts";

/** Connections of either side to the database. */
const connections = 10;

export interface Result {
  readonly rows: readonly Row[];
  readonly postgresVersion: string;
}

/** Everything about the login: side by side with oidc-provider, then what has no peer. */
export async function benchLogin(report: (line: string) => void): Promise<Result> {
  await using cluster = await openCluster();
  const connectionString = await cluster.createDatabase("service");
  const compared = await compare(cluster, connectionString, report);
  const streams = await openStreams(connectionString, report);
  report("drawing QR codes");
  const qr = benchQr();
  report("starting on an empty machine");
  return {
    rows: [...compared, ...streams, ...qr, ...(await benchStarts())],
    postgresVersion: cluster.version,
  };
}

async function compare(
  cluster: Cluster,
  connectionString: string,
  report: (line: string) => void,
): Promise<Row[]> {
  report("starting both sides");
  await using broker = await startBroker({ connectionString, connections });
  const { bytes } = await openBrokerPage(broker);
  await using peer = await startPeer({
    connectionString: await cluster.createDatabase("peer"),
    connections,
    audience,
    pageBytes: bytes,
  });
  const both = [openBrokerTurns(cluster, broker), await openPeerTurns(cluster, peer)] as const;
  const rows = rowsOf(await runSideBySide(both, { vacuum: async () => cluster.vacuum(), report }));
  const [ours, peers] = [residentBytes(broker.pid), residentBytes(peer.pid)];
  report("what the runtime costs alone");
  const keySet = await sendExpecting(200, `${broker.baseUrl}/.well-known/jwks.json`);
  const mib = 1024 * 1024;
  const memory: Row = {
    name: "resident memory after the same load",
    unit: "MiB",
    ours: ours / mib,
    peer: peers / mib,
    target: { kind: "share-of-peer", most: 0.6 },
  };
  return [...rows, ...(await benchFloors(keySet)), memory];
}

/** The streams meet a process that has served little, so that memory freed elsewhere does not hide what they take. */
async function openStreams(
  connectionString: string,
  report: (line: string) => void,
): Promise<Row[]> {
  await using broker = await startBroker({ connectionString, connections });
  return await benchStreams(broker, report, streamsCount);
}

/** The streams alone. */
export async function benchStreamsAlone(report: (line: string) => void): Promise<Result> {
  await using cluster = await openCluster();
  const rows = await openStreams(await cluster.createDatabase("service"), report);
  return { rows, postgresVersion: cluster.version };
}

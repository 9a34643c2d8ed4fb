import type { Cluster } from "./cluster.ts";
import { sendExpecting } from "./http-client.ts";
import { times } from "./load.ts";
import { expectRs256, type Tokens } from "./oauth.ts";
import { sumOf } from "./party.ts";
import { finishAtPeer, introspectAtPeer, openPeerPage, type Peer, refreshAtPeer } from "./peer.ts";
import { type Batch, measureEach, measureSame, type Turns } from "./turns.ts";

const account = "svcid:0x00112233445566778899aabbccddeeff00112233";

/** The peer's turns. Its JWT access tokens cannot be introspected nor taken to userinfo, so an opaque one is. */
export async function openPeerTurns(cluster: Cluster, peer: Peer): Promise<Turns> {
  const opaque = await finishAtPeer(peer, await openPeerPage(peer, null), account);
  let held: Tokens[] = [];
  const on = (batch: Batch): { cluster: Cluster; party: Peer; batch: Batch } => ({
    cluster,
    party: peer,
    batch,
  });
  return {
    party: peer,
    async logIn(batch) {
      const pages = await measureEach(on(batch), times(batch.operations), async () =>
        openPeerPage(peer),
      );
      const finished = await measureEach(on(batch), pages.result, async (page) =>
        finishAtPeer(peer, page, account),
      );
      held = finished.result;
      expectRs256(held[0]?.access ?? "");
      return {
        login: sumOf([pages.cost, finished.cost]),
        page: pages.cost,
        wallet: null,
        status: null,
        pageBytes: pages.result[0]?.bytes ?? 0,
      };
    },
    async refresh(batch) {
      const { cost, result } = await measureEach(on(batch), held, async (tokens) =>
        refreshAtPeer(peer, tokens),
      );
      held = result;
      return cost;
    },
    introspect: async (batch) =>
      measureSame(on(batch), async () => introspectAtPeer(peer, opaque.access)),
    readUserinfo: async (batch) =>
      measureSame(on(batch), async () =>
        sendExpecting(200, `${peer.baseUrl}/me`, {
          headers: { authorization: `Bearer ${opaque.access}` },
        }),
      ),
    readDiscovery: async (batch) =>
      measureSame(on(batch), async () =>
        sendExpecting(200, `${peer.baseUrl}/.well-known/openid-configuration`),
      ),
    readKeys: async (batch) =>
      measureSame(on(batch), async () => sendExpecting(200, `${peer.baseUrl}/jwks`)),
  };
}

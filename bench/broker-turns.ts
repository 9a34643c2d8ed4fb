import { newIdentity } from "../test/raw-wallet.ts";
import {
  approveAtBroker,
  type Broker,
  claimAtBroker,
  finishAtBroker,
  introspectAtBroker,
  openBrokerPage,
  readDigits,
  refreshAtBroker,
} from "./broker.ts";
import type { Cluster } from "./cluster.ts";
import { sendExpecting } from "./http-client.ts";
import { times } from "./load.ts";
import { expectRs256, type Tokens } from "./oauth.ts";
import { sumOf } from "./party.ts";
import { type Batch, type LoginCosts, measureEach, measureSame, type Turns } from "./turns.ts";

const identitiesCount = 50;

/** The service's turns. Each login goes through stages, so that the wallet's part can be told from the rest. */
export function openBrokerTurns(cluster: Cluster, broker: Broker): Turns {
  const identities = times(identitiesCount).map(() => newIdentity());
  let held: Tokens[] = [];
  const on = (batch: Batch): { cluster: Cluster; party: Broker; batch: Batch } => ({
    cluster,
    party: broker,
    batch,
  });
  const accessToken = (): string => held[0]?.access ?? "";
  return {
    party: broker,
    async logIn(batch): Promise<LoginCosts> {
      const pages = await measureEach(on(batch), times(batch.operations), async () =>
        openBrokerPage(broker),
      );
      const scanned = pages.result.map((page, at) => ({
        page,
        identity: identities[at % identitiesCount] ?? newIdentity(),
      }));
      const claims = await measureEach(on(batch), scanned, async ({ page, identity }) => ({
        page,
        claimed: await claimAtBroker(page, identity),
      }));
      const answers = await measureEach(on(batch), claims.result, async ({ page, claimed }) => ({
        claimed,
        approval: await readDigits(broker, page, claimed),
      }));
      const approvals = await measureEach(
        on(batch),
        answers.result,
        async ({ claimed, approval }) => approveAtBroker(claimed, approval),
      );
      const finished = await measureEach(on(batch), pages.result, async (page) =>
        finishAtBroker(broker, page),
      );
      held = finished.result;
      expectRs256(accessToken());
      return {
        login: sumOf([pages.cost, finished.cost]),
        page: pages.cost,
        wallet: sumOf([claims.cost, approvals.cost]),
        status: answers.cost,
        pageBytes: pages.result[0]?.bytes ?? 0,
      };
    },
    async refresh(batch) {
      const { cost, result } = await measureEach(on(batch), held, async (tokens) =>
        refreshAtBroker(broker, tokens),
      );
      held = result;
      return cost;
    },
    introspect: async (batch) =>
      measureSame(on(batch), async () => introspectAtBroker(broker, accessToken())),
    readUserinfo: async (batch) =>
      measureSame(on(batch), async () =>
        sendExpecting(200, `${broker.baseUrl}/userinfo`, {
          headers: { authorization: `Bearer ${accessToken()}` },
        }),
      ),
    readDiscovery: async (batch) =>
      measureSame(on(batch), async () =>
        sendExpecting(200, `${broker.baseUrl}/.well-known/openid-configuration`),
      ),
    readKeys: async (batch) =>
      measureSame(on(batch), async () =>
        sendExpecting(200, `${broker.baseUrl}/.well-known/jwks.json`),
      ),
  };
}

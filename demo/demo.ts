// `npm start`: the service with everything embedded, the demo shop, and a demo world at the first start.
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { openShop } from "@svc/shop";
import { compose, type Service } from "@svc/service";
import { outliveReaders } from "@svc/service/closed-pipe";
import { ConfigError, parseConfig } from "@svc/service/config";
import { getBuiltInIssuer } from "@svc/service/credentials";
import { makeDataDirectory } from "@svc/service/data-directory";
import { lockDirectory } from "@svc/service/directory-lock";
import { announce } from "@svc/service/log";
import { describeStartFault } from "@svc/service/start-fault";
import { watchStopSignal } from "@svc/service/stop-signal";
import { openShopAccount } from "./seed-shop.ts";
import { openDemoWorld } from "./seed.ts";

async function start(): Promise<void> {
  const config = parseConfig();
  if (config.profile !== "dev")
    throw new ConfigError(
      "npm start seeds a demo world, which only the profile dev allows; start the service with npm run svc -- serve",
    );
  makeDataDirectory(config.dataDirectory);
  using _ = lockDemo(config.dataDirectory);
  const started = watchStopSignal(config);
  await using service = await compose(config);
  const { port } = new URL(service.baseUrl);
  const shopPort = Number(port) + 1;
  const shopUrl = `http://localhost:${shopPort}`;
  const place = { directory: config.dataDirectory, shopUrl };
  const world = await openDemoWorld(service, place);
  const account = await openShopAccount(service, place);
  const shopDirectory = join(config.dataDirectory, "shop");
  const { rpcUrl, chainId } = world.chain;
  const shop = await openShop({
    port: shopPort,
    host: config.host,
    issuer: service.baseUrl,
    clientId: account.clientId,
    clientSecret: account.clientSecret,
    audience: world.clients[0]?.audiences[0] ?? "",
    clockUrl: `${service.baseUrl}/health/ready`,
    kyc: {
      apiKey: account.apiKey,
      sourceKey: account.sourceKey,
      signingKeys: [account.signingKey],
      directory: shopDirectory,
      anchors: await anchorsOf(service, rpcUrl),
    },
    kyb: {
      apiKey: account.apiKey,
      clientDomainId: account.clientDomainId,
      directory: join(shopDirectory, "kyb"),
      chain: { rpcUrl, chainId },
    },
    onFault: (error) => service.ctx.log.warn({ err: error }, "the shop reports a fault"),
  });
  const stopped = started();
  // As `serve` does, so that the next start is quick even after a kill.
  flushCompileCache();
  announce(`shop      ${shop.url}`);
  announce(`docs      ${service.baseUrl}/openapi.json`);
  announce(`metrics   ${service.metricsUrl}`);
  announce(`ready ${service.baseUrl}`);
  await stopped;
  await shop.close();
}

/** With an external database nothing else keeps two demos apart. @throws {ConfigError} */
function lockDemo(directory: string): Disposable {
  const lock = lockDirectory(directory);
  if (lock === null)
    throw new ConfigError(
      `another process already runs in ${directory}; stop it first, or choose another DATA_DIR`,
    );
  return { [Symbol.dispose]: () => lock.release() };
}

/** The anchors that a merchant takes from the operator's documents, never from a receipt. */
async function anchorsOf({ ctx }: Service, rpcUrl: string) {
  const { chainId, contracts, operator } = ctx.chain;
  const issuers = [
    await getBuiltInIssuer(ctx, "demo", "live"),
    await getBuiltInIssuer(ctx, "email", "live"),
  ];
  const addresses = issuers.map(({ address }) => address);
  return { rpcUrl, chainId, ...contracts, operator, issuers: addresses };
}

/** Starts everything; if it cannot, says why on standard error, and the process will end with status 1. */
export async function runDemo(): Promise<void> {
  try {
    await start();
  } catch (error) {
    // A person reads this: one line that says what is wrong, and the trace only for unforeseen faults.
    const trace = error instanceof Error ? error.stack : String(error);
    process.stderr.write(`${describeStartFault(error) ?? trace}\n`);
    process.exitCode = 1;
  }
}

outliveReaders();

// oxlint-disable node/no-process-env -- the one place where the wallet reads its environment
import { join } from "node:path";

/** What the environment tells the wallet. */
export interface Environment {
  /** `DATA_DIR`; default `.data`, as root `/var/lib/svc`: where the service keeps its demo world, too. */
  readonly dataDirectory: string;
  /** `WALLET_PASSPHRASE`: opens the vault if no `--passphrase-file` is given. */
  readonly passphrase: string | undefined;
}

export function readEnvironment(): Environment {
  const { DATA_DIR: dataDirectory, WALLET_PASSPHRASE: passphrase } = process.env;
  const isRoot = process.getuid?.() === 0;
  const fallback = isRoot ? "/var/lib/svc" : join(process.cwd(), ".data");
  return { dataDirectory: dataDirectory || fallback, passphrase: passphrase || undefined };
}

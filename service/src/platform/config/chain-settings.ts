import { type Address, isHexOf, parseAddress } from "@svc/protocol";
import { flag, oneOf, setting, whole } from "./setting.ts";

/** The order of secp256k1: private keys lie between zero and this (SEC 2 section 2.4.1). */
const keyEnd = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Checked here, because a library that rejects the key later would quote it in its message. */
function privateKey(value: string): string {
  const hex = value.replace(/^0x/, "");
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Error("must be 64 lower-case hex digits");
  const number = BigInt(`0x${hex}`);
  if (number === 0n || number >= keyEnd)
    throw new Error("must be a private key of secp256k1, such as one from `openssl rand -hex 32`");
  return hex;
}

function address(value: string): Address {
  const parsed = parseAddress(value);
  if (parsed === null) throw new Error("must be an address such as 0x and 40 hex digits");
  return parsed;
}

function callUrl(value: string): string {
  if (!/^https?:$/.test(URL.parse(value)?.protocol ?? ""))
    throw new Error("must be an http(s) address");
  return value;
}

function salt(value: string): `0x${string}` {
  if (!isHexOf(value, 32)) throw new Error("must be 0x and 64 hex digits");
  return value;
}

/** Native coin with up to nine decimals. */
function coins(value: string): number {
  if (!/^\d{1,6}(\.\d{1,9})?$/.test(value))
    throw new Error("must be an amount of native coin such as 0.5");
  return Number(value);
}

/** The settings of the chain that orders are settled on; part of `settings` in `config.ts`. */
export const chainSettings = {
  chain: setting({
    env: "CHAIN",
    unit: "on | off",
    fallback: "on",
    parse: oneOf("on", "off"),
    description:
      "`off` starts the service without a chain: logins work, and everything that needs settlement fails. For tests of other parts; refused in `production`.",
  }),
  chainRpcUrl: setting({
    env: "CHAIN_RPC_URL",
    unit: "URL",
    fallback: null,
    parse: callUrl,
    description: "JSON-RPC address of the chain to settle on. Unset: the embedded chain.",
    secret: true,
  }),
  embeddedChainAllowed: setting({
    env: "ALLOW_EMBEDDED_CHAIN",
    unit: "true | false",
    fallback: "false",
    parse: flag,
    description: "Lets `production` run on the embedded chain.",
  }),
  signerKey: setting({
    env: "SIGNER_KEY",
    unit: "hex",
    fallback: null,
    parse: privateKey,
    description:
      "Private key (secp256k1) of the operator's account, which sends every transaction. If neither this nor `SIGNER_URL` is set in `dev`, a key is made at the first start and kept sealed in the database.",
    secret: true,
  }),
  signerUrl: setting({
    env: "SIGNER_URL",
    unit: "URL",
    fallback: null,
    parse: callUrl,
    description:
      "Address of a remote signer to use instead of `SIGNER_KEY`: JSON-RPC with `eth_signTransaction`, such as Web3Signer.",
    secret: true,
  }),
  signerAddress: setting({
    env: "SIGNER_ADDRESS",
    unit: "address",
    fallback: null,
    parse: address,
    description: "Account that the remote signer signs for.",
  }),
  confirmations: setting({
    env: "CONFIRMATIONS",
    unit: "blocks",
    fallback: null,
    parse: whole(1, 1000),
    description:
      "Blocks until a transaction is final, including its own. Default: 1 on the embedded chain, 12 elsewhere.",
  }),
  settlementWindowSeconds: setting({
    env: "SETTLEMENT_WINDOW_SECONDS",
    unit: "seconds",
    fallback: "2",
    parse: whole(0, 600),
    description: "How long a settlement batch waits for more orders.",
  }),
  chainSpendCap: setting({
    env: "CHAIN_SPEND_CAP",
    unit: "native coin per day (UTC)",
    fallback: "1",
    parse: coins,
    description:
      "The most that transactions may cost in a day. Those that nobody is charged for (foundings and acts of businesses, and credentials) may use at most half of it. Transactions that do not fit wait for the next day, and the alarm `spend_cap` is raised. A transaction that alone costs more than the cap waits until the cap is raised or fees fall (alarm `cost_above_cap`); cheaper ones go on meanwhile.",
  }),
  contractSalt: setting({
    env: "CONTRACT_SALT",
    unit: "hex",
    fallback: `0x${"0".repeat(64)}`,
    parse: salt,
    description:
      "Salt for the contracts' addresses at the first start; later starts keep the addresses.",
  }),
} as const;

/** Chain settings that are null unless given. */
export type OptionalChainSetting = "chainRpcUrl" | "signerKey" | "signerUrl" | "signerAddress";

/** The first ten accounts that development chains fund, whose keys are printed in every tutorial. */
const publicKnowledge = new Set([
  "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
  "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
  "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
  "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
  "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
]);

/** Also small numbers are: whoever collects coin looks after their accounts, and no generator makes them. */
function isPubliclyKnown(key: string): boolean {
  return publicKnowledge.has(key) || key.startsWith("0".repeat(16));
}

interface ChainChoice {
  readonly chain: "on" | "off";
  readonly chainRpcUrl: string | null;
  readonly embeddedChainAllowed: boolean;
  readonly signerKey: string | null;
  readonly signerUrl: string | null;
  readonly signerAddress: Address | null;
}

/** The fault in the choice of signer, in any profile; null if there is none. */
export function faultOfSigner(config: ChainChoice): string | null {
  if ((config.signerUrl === null) !== (config.signerAddress === null))
    return "SIGNER_URL and SIGNER_ADDRESS must be set together";
  if (config.signerUrl !== null && config.signerKey !== null)
    return "SIGNER_KEY must not be set if SIGNER_URL is set";
  return null;
}

/** The fault for which the profile `production` refuses the settings; null if there is none. */
export function faultOfChainInProduction(config: ChainChoice): string | null {
  if (config.chain === "off") return "CHAIN must be on in the profile production";
  if (config.chainRpcUrl === null && !config.embeddedChainAllowed)
    return "CHAIN_RPC_URL must be set in the profile production (or ALLOW_EMBEDDED_CHAIN=true)";
  if (config.signerKey === null && config.signerUrl === null)
    return "SIGNER_KEY or SIGNER_URL must be set in the profile production";
  if (config.signerKey !== null && isPubliclyKnown(config.signerKey))
    return "SIGNER_KEY must not be a publicly known key in the profile production";
  return null;
}

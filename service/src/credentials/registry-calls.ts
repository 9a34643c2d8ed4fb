import type { Address, Hex, Hex32 } from "@svc/protocol";
import { type ChainContext, loadContractRead, readFinal } from "../chain/index.ts";

/** The calls of `CredentialRegistry` that this slice makes, encoded (Solidity ABI). */
export interface RegistryCalls {
  attest(issuer: Address, roots: readonly Hex32[]): Hex;
  revoke(issuer: Address, roots: readonly Hex32[]): Hex;
  distrust(issuer: Address, from: number): Hex;
  /** Gives `operator` the role to write in the name of the issuer. */
  grantRole(issuer: Address, operator: Address): Hex;
  /** Takes that role from another account of the operator. */
  revokeRole(issuer: Address, account: Address): Hex;
  /** The registry's admin: it grants roles and distrusts issuers. */
  admin(ctx: ChainContext): Promise<Address>;
  /** Since when the issuer is distrusted, Unix seconds, according to final blocks; null for a trusted issuer. */
  distrustedFrom(ctx: ChainContext, issuer: Address): Promise<number | null>;
}

/** Loads the library when it is first needed; most verbs of the command line do not need it. */
export async function loadRegistryCalls(): Promise<RegistryCalls> {
  const [viem, readContract] = await Promise.all([import("viem/utils"), loadContractRead()]);
  const { encodeFunctionData, padHex, parseAbi } = viem;
  const abi = parseAbi([
    "function attest(address issuer, bytes32[] roots)",
    "function revoke(address issuer, bytes32[] roots)",
    "function distrust(address issuer, uint48 from)",
    "function grantRole(bytes32 role, address account)",
    "function revokeRole(bytes32 role, address account)",
    "function defaultAdmin() view returns (address)",
    "function statusOf(address issuer, bytes32 root) view returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom)",
  ]);
  return {
    attest: (issuer, roots) =>
      encodeFunctionData({ abi, functionName: "attest", args: [issuer, [...roots]] }),
    revoke: (issuer, roots) =>
      encodeFunctionData({ abi, functionName: "revoke", args: [issuer, [...roots]] }),
    distrust: (issuer, from) =>
      encodeFunctionData({ abi, functionName: "distrust", args: [issuer, from] }),
    // The role of an issuer is its address as a number.
    grantRole: (issuer, operator) =>
      encodeFunctionData({
        abi,
        functionName: "grantRole",
        args: [padHex(issuer, { size: 32 }), operator],
      }),
    revokeRole: (issuer, account) =>
      encodeFunctionData({
        abi,
        functionName: "revokeRole",
        args: [padHex(issuer, { size: 32 }), account],
      }),
    admin: async ({ chain }) => {
      const call = {
        abi,
        address: chain.contracts.registry,
        functionName: "defaultAdmin",
      } as const;
      return (await readContract(chain, call)).toLowerCase() as Address;
    },
    distrustedFrom: async ({ chain }, issuer) => {
      // The distrust does not depend on the root.
      const args = [issuer, padHex("0x", { size: 32 })] as const;
      const address = chain.contracts.registry;
      const call = { abi, address, functionName: "statusOf", args } as const;
      const read = async (block?: number) =>
        readContract(chain, block === undefined ? call : { ...call, block });
      // A chain whose blocks are final at once may have only the newest state.
      const [, , from] =
        chain.confirmations === 1 ? await read() : (await readFinal(chain, read)).answer;
      return from === 0 ? null : from;
    },
  };
}

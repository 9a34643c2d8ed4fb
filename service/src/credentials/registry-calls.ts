import type { Address, Hex, Hex32 } from "@svc/protocol";

/** The calls of `CredentialRegistry` that this slice makes, encoded (Solidity ABI). */
export interface RegistryCalls {
  attest(issuer: Address, roots: readonly Hex32[]): Hex;
  revoke(issuer: Address, roots: readonly Hex32[]): Hex;
  distrust(issuer: Address, from: number): Hex;
  /** Lets `operator` write in the name of the issuer. */
  grantRole(issuer: Address, operator: Address): Hex;
}

/** Loaded when first needed: verbs of the command line do without the library. */
export async function loadRegistryCalls(): Promise<RegistryCalls> {
  const { encodeFunctionData, padHex, parseAbi } = await import("viem/utils");
  const abi = parseAbi([
    "function attest(address issuer, bytes32[] roots)",
    "function revoke(address issuer, bytes32[] roots)",
    "function distrust(address issuer, uint48 from)",
    "function grantRole(bytes32 role, address account)",
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
  };
}

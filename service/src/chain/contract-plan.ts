import { businessFactory, credentialRegistry, settlement } from "@svc/contracts";
import { type Address, canonicalJson, type Hex32 } from "@svc/protocol";
import { encodeDeployData, keccak256, toBytes } from "viem/utils";
import { type Deployment, planDeployment } from "./deployment.ts";
import type { ChainIdentity, ContractName } from "./identity-store.ts";

/** A contract without its place. */
type Made = Omit<Deployment, "salt" | "address">;

/**
 * Plans the contracts of an installation. Addresses of the first start are kept: after a change of signer or salt,
 * computed ones would be other, empty contracts.
 */
export function planContracts(given: {
  readonly salt: Hex32;
  readonly operator: Address;
  readonly identity: ChainIdentity;
}): Record<ContractName, Deployment> {
  const { salt, operator, identity } = given;
  const plan = (contract: ContractName, made: Made): Deployment => {
    const planned = planDeployment({ ...made, salt });
    return { ...planned, address: identity[contract] ?? planned.address };
  };
  const registry = plan("registry", {
    name: "CredentialRegistry",
    initCode: encodeDeployData({
      abi: credentialRegistry.abi,
      bytecode: credentialRegistry.bytecode,
      args: [operator],
    }),
    codeHash: credentialRegistry.deployedBytecodeHash,
  });
  // The registry's address is derived from the operator's account, so it differs between installations on one chain.
  const factoryOf = (environment: "live" | "sandbox"): Made =>
    makeFactory(["svc-business-v1", identity.chainId, registry.address, environment]);
  return {
    registry,
    settlement: plan("settlement", {
      name: "Settlement",
      initCode: settlement.bytecode,
      codeHash: settlement.deployedBytecodeHash,
    }),
    live: plan("live", factoryOf("live")),
    sandbox: plan("sandbox", factoryOf("sandbox")),
  };
}

/**
 * The salt differs for live, sandbox and every installation, so that no business wallet of one exists in another
 * (decisions section 6).
 */
function makeFactory(environment: readonly (string | number)[]): Made {
  const { abi, bytecode, deployedBytecodeHash, immutablesAt } = businessFactory;
  const args = [keccak256(toBytes(canonicalJson(environment)))] as const;
  return {
    name: "BusinessFactory",
    initCode: encodeDeployData({ abi, bytecode, args }),
    codeHash: deployedBytecodeHash,
    immutablesAt,
  };
}

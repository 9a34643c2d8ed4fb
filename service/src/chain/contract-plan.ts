import { businessFactory, credentialRegistry, settlement } from "@svc/contracts";
import { type Address, canonicalJson, type Hex32 } from "@svc/protocol";
import { encodeDeployData, keccak256, toBytes } from "viem/utils";
import { type Deployment, planDeployment } from "./deployment.ts";
import type { ChainIdentity, ContractName } from "./identity-store.ts";

/**
 * Plans the contracts of an installation. They keep the addresses of the first start: with another signer or salt they
 * would be others, and empty.
 */
export function planContracts(given: {
  readonly salt: Hex32;
  readonly operator: Address;
  readonly identity: ChainIdentity;
}): Record<ContractName, Deployment> {
  const { salt, operator, identity } = given;
  const registry = planDeployment({
    name: "CredentialRegistry",
    salt,
    initCode: encodeDeployData({
      abi: credentialRegistry.abi,
      bytecode: credentialRegistry.bytecode,
      args: [operator],
    }),
    codeHash: credentialRegistry.deployedBytecodeHash,
  });
  const settled = planDeployment({
    name: "Settlement",
    salt,
    initCode: settlement.bytecode,
    codeHash: settlement.deployedBytecodeHash,
  });
  // Derived from the operator's account, so it differs between installations on one chain.
  const installation = identity.registry ?? registry.address;
  const factoryOf = (environment: "live" | "sandbox"): Deployment =>
    planFactory(salt, ["svc-business-v1", identity.chainId, installation, environment]);
  const plan = {
    registry,
    settlement: settled,
    live: factoryOf("live"),
    sandbox: factoryOf("sandbox"),
  };
  return {
    registry: { ...plan.registry, address: identity.registry ?? plan.registry.address },
    settlement: { ...plan.settlement, address: identity.settlement ?? plan.settlement.address },
    live: { ...plan.live, address: identity.live ?? plan.live.address },
    sandbox: { ...plan.sandbox, address: identity.sandbox ?? plan.sandbox.address },
  };
}

/**
 * The salt differs for live, sandbox and every installation, so that no business wallet of one exists in another
 * (decisions section 6).
 */
function planFactory(salt: Hex32, environment: readonly (string | number)[]): Deployment {
  const { abi, bytecode, deployedBytecodeHash, immutablesAt } = businessFactory;
  const args = [keccak256(toBytes(canonicalJson(environment)))] as const;
  return planDeployment({
    name: "BusinessFactory",
    salt,
    initCode: encodeDeployData({ abi, bytecode, args }),
    codeHash: deployedBytecodeHash,
    immutablesAt,
  });
}

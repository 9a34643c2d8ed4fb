import type {
  Abi,
  ContractFunctionArgs,
  ContractFunctionName,
  ContractFunctionParameters,
  ContractFunctionReturnType,
  DecodeFunctionResultParameters,
  EncodeFunctionDataParameters,
  Hex,
} from "viem";
import { decodeFunctionResult, encodeFunctionData } from "viem/utils";
import type { Chain } from "./context.ts";
import { NoAnswer } from "./node.ts";

type View = "pure" | "view";

/**
 * Calls a view function of a contract, as of the newest block or the given one. It never follows an off-chain lookup
 * (EIP-3668), which could lead anywhere.
 *
 * @throws {RpcError} if it reverts, or the node refuses; {@link NodeAway}, also for an answer that is not hex; an error
 * of the library if the answer cannot be decoded, for example because there is no such contract
 */
export async function readContract<
  const abi extends Abi,
  name extends ContractFunctionName<abi, View>,
  const args extends ContractFunctionArgs<abi, View, name>,
>(
  { node }: Pick<Chain, "node">,
  call: ContractFunctionParameters<abi, View, name, args> & { readonly block?: number },
): Promise<ContractFunctionReturnType<abi, View, name, args>> {
  const data = encodeFunctionData(call as EncodeFunctionDataParameters);
  const block = call.block === undefined ? "latest" : `0x${call.block.toString(16)}`;
  const answer = await node.request("eth_call", [{ to: call.address, data }, block]);
  if (typeof answer !== "string" || !/^0x(?:[0-9a-f]{2})*$/i.test(answer))
    throw new NoAnswer("the chain's node answered with something else than bytes");
  const given = { ...call, data: answer as Hex } as DecodeFunctionResultParameters;
  return decodeFunctionResult(given) as ContractFunctionReturnType<abi, View, name, args>;
}

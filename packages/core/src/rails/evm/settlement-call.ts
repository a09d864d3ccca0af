/** The call that moves a payment's money: how it is encoded, and whether the chain would accept it now. */
import {
  decodeErrorResult,
  encodeFunctionData,
  isErc6492Signature,
  parseAbi,
  parseErc6492Signature,
} from 'viem';
import { type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import type { PaymentRefused } from '../../paid-call/rail.ts';
import { refuse } from '../on-chain/refusals.ts';
import { type Authorization, type Hex, transferCalldata } from './eip3009.ts';
import type { EvmNetwork } from './network.ts';

const MULTICALL3 = '0xcA11bde05977b3631167028862bE2a173976CA11';
const AGGREGATE = parseAbi([
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[])',
]);
const ERROR_STRING = parseAbi(['error Error(string)']);
/**
 * The most gas that a settlement may use: enough to deploy a wallet and make its first payment. The signer decides
 * which code runs, and we pay for it.
 */
export const MAX_GAS = 1_000_000n;

/** A network with one of its nodes. */
export interface Node {
  network: EvmNetwork;
  rpc: Rpc;
}

/** The call that moves the money: directly to the asset, or through Multicall3 after the wallet's deployment. */
export interface SettlementCall {
  to: Hex;
  data: Hex;
}

/** Who sends a transaction, and the fees that it is sent with. */
export interface SentAs {
  from: Hex;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

export async function settlementCall(
  { network, rpc }: Node,
  authorization: Authorization,
  signature: Hex,
): Promise<SettlementCall> {
  if (!isErc6492Signature(signature))
    return { to: network.asset, data: transferCalldata(authorization, signature) };
  const wrapped = parseErc6492Signature(signature);
  const pay = transferCalldata(authorization, wrapped.signature);
  if (wrapped.address === undefined || wrapped.data === undefined || (await hasCode(rpc, authorization.from)))
    return { to: network.asset, data: pay };
  // The wallet's deployment and its first payment in one transaction. Neither call has any privilege of ours.
  const calls = [
    { target: wrapped.address, allowFailure: true, callData: wrapped.data },
    { target: network.asset, allowFailure: false, callData: pay },
  ];
  return {
    to: MULTICALL3,
    data: encodeFunctionData({ abi: AGGREGATE, functionName: 'aggregate3', args: [calls] }),
  };
}

/** As `EvmChain.whyNot`. */
export async function whyNot(
  node: Node,
  authorization: Authorization,
  signature: Hex,
  gasLimit: bigint = MAX_GAS,
  as: SentAs | null = null,
): Promise<PaymentRefused | null> {
  const call = await settlementCall(node, authorization, signature);
  try {
    await node.rpc.call('eth_call', [
      {
        to: call.to,
        data: call.data,
        gas: hexOf(gasLimit),
        ...(as === null
          ? { from: MULTICALL3 }
          : {
              from: as.from,
              maxFeePerGas: hexOf(as.maxFeePerGas),
              maxPriorityFeePerGas: hexOf(as.maxPriorityFeePerGas),
            }),
      },
      'latest',
    ]);
    return null;
  } catch (error) {
    const revert = revertText(error);
    if (revert === null) throw error;
    return refusalOf(revert);
  }
}

/** Whether there is a contract at an address. */
export async function hasCode(rpc: Rpc, address: Hex): Promise<boolean> {
  const code = await rpc.call('eth_getCode', [address, 'latest']);
  return typeof code === 'string' && code.length > 2;
}

/** A number in the form that nodes take. */
export function hexOf(value: bigint): Hex {
  return `0x${value.toString(16)}`;
}

/** The text of a revert; null when the node failed for another reason. */
export function revertText(error: unknown): string | null {
  if (!(error instanceof RpcRefusal)) return null;
  const data =
    typeof error.data === 'string' ? error.data : (error.data as { data?: unknown } | null | undefined)?.data;
  if (typeof data === 'string' && data.startsWith('0x08c379a0')) {
    try {
      return String(decodeErrorResult({ abi: ERROR_STRING, data: data as Hex }).args[0]);
    } catch {
      return '';
    }
  }
  return error.code === 3 || /revert|out of gas|invalid opcode/i.test(error.message) ? error.message : null;
}

/** The refusal for each of Circle's revert texts. */
function refusalOf(revert: string): PaymentRefused {
  if (/authorization is used or canceled/i.test(revert)) return refuse('PAYMENT_AUTHORIZATION_USED');
  if (/authorization is expired/i.test(revert)) return refuse('PAYMENT_EXPIRED');
  if (/authorization is not yet valid/i.test(revert)) return refuse('PAYMENT_NOT_YET_VALID');
  if (/exceeds balance/i.test(revert)) return refuse('PAYMENT_INSUFFICIENT_FUNDS');
  if (/invalid signature/i.test(revert)) return refuse('PAYMENT_SIGNATURE_INVALID');
  if (/blacklisted/i.test(revert)) return refuse('PAYMENT_PAYER_BLOCKED');
  return refuse('PAYMENT_VERIFICATION_FAILED');
}

/** Checks whether a bridge's transaction, built by somebody else, does what was asked for and nothing else. */
import { type Address, decodeAbiParameters, type Hex, isAddressEqual, zeroAddress } from 'viem';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import type { LifiQuote, LifiRequest } from '../../../upstreams/adapters/lifi.ts';

/**
 * LI.FI's contract: the only one that may be called or get an allowance. Source: the deployments in
 * https://github.com/lifinance/contracts (`deployments/*.json`, `LiFiDiamond`).
 */
export const LIFI_DIAMOND: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE';

/** The most wei that a bridge may take in the chain's own coin beside the amount. */
const MOST_MESSAGE_FEE_WEI: Readonly<Record<EvmChainName, bigint>> = {
  ethereum: 5n * 10n ** 16n,
  base: 5n * 10n ** 16n,
  arbitrum: 5n * 10n ** 16n,
  optimism: 5n * 10n ** 16n,
  polygon: 200n * 10n ** 18n,
  bsc: 2n * 10n ** 17n,
};
/** A transaction that would lose more than this part of the value is refused. */
const MOST_LOSS = 0.2;

/** The first parameter of every function that begins a transfer. https://github.com/lifinance/contracts, ILiFi.sol */
const BRIDGE_DATA = [
  {
    type: 'tuple',
    components: [
      { name: 'transactionId', type: 'bytes32' },
      { name: 'bridge', type: 'string' },
      { name: 'integrator', type: 'string' },
      { name: 'referrer', type: 'address' },
      { name: 'sendingAssetId', type: 'address' },
      { name: 'receiver', type: 'address' },
      { name: 'minAmount', type: 'uint256' },
      { name: 'destinationChainId', type: 'uint256' },
      { name: 'hasSourceSwaps', type: 'bool' },
      { name: 'hasDestinationCall', type: 'bool' },
    ],
  },
] as const;

/**
 * Compares a quote with the request, field by field, and the transaction's own data with both.
 *
 * @returns what does not agree, in words; empty when everything does
 */
export function faultsOf(asked: LifiRequest, chain: EvmChainName, quote: LifiQuote): string[] {
  const { action, estimate, transactionRequest: transaction } = quote;
  const isNative = same(asked.fromToken, zeroAddress);
  const faults: string[] = [];
  const hold = (holds: boolean, what: string) => {
    if (!holds) faults.push(what);
  };
  hold(action.fromChainId === asked.fromChainId, 'another chain to send from');
  hold(action.toChainId === asked.toChainId, 'another chain to receive on');
  hold(same(action.fromToken.address, asked.fromToken), 'another token to send');
  hold(same(action.toToken.address, asked.toToken), 'another token to receive');
  hold(action.fromAmount === asked.fromAmount && estimate.fromAmount === asked.fromAmount, 'another amount');
  hold(same(action.fromAddress, asked.fromAddress), 'another sender');
  hold(same(action.toAddress, asked.toAddress), 'another recipient');
  hold(action.slippage <= asked.slippage + 1e-9, 'more slippage');
  hold(estimate.toAmountMin > 0n && estimate.toAmountMin <= estimate.toAmount, 'no least amount');
  const least = (estimate.toAmount * BigInt(Math.floor((1 - asked.slippage) * 1e6))) / 1_000_000n;
  hold(estimate.toAmountMin + 1n >= least, 'a least amount below the slippage');
  const { fromAmountUSD, toAmountUSD } = estimate;
  hold(
    fromAmountUSD === null || toAmountUSD === null || toAmountUSD >= fromAmountUSD * (1 - MOST_LOSS),
    `a loss of more than ${MOST_LOSS * 100} %`,
  );

  hold(same(transaction.from, asked.fromAddress), 'a transaction of another sender');
  hold(transaction.chainId === asked.fromChainId, 'a transaction for another chain');
  hold(same(transaction.to, LIFI_DIAMOND), 'a transaction to a contract that is not on the list');
  hold(
    isNative || same(estimate.approvalAddress, LIFI_DIAMOND),
    'an allowance for a contract that is not on the list',
  );
  const beside = transaction.value - (isNative ? asked.fromAmount : 0n);
  hold(beside >= 0n && beside <= MOST_MESSAGE_FEE_WEI[chain], 'an unreasonable value');
  const data = bridgeDataOf(transaction.data);
  if (data === null) {
    faults.push('data that cannot be read');
    return faults;
  }
  hold(same(data.receiver, asked.toAddress), 'data with another recipient');
  hold(data.destinationChainId === BigInt(asked.toChainId), 'data for another chain');
  hold(!data.hasDestinationCall, 'data that calls a contract at the other end');
  hold(
    data.hasSourceSwaps ||
      (same(data.sendingAssetId, asked.fromToken) && data.minAmount === asked.fromAmount),
    'data with another token or amount',
  );
  return faults;
}

function bridgeDataOf(data: string) {
  try {
    return decodeAbiParameters(BRIDGE_DATA, `0x${data.slice(10)}` as Hex)[0];
  } catch {
    return null;
  }
}

function same(a: string, b: string): boolean {
  return isAddressEqual(a.toLowerCase() as Address, b.toLowerCase() as Address);
}

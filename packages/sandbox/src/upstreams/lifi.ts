/**
 * https://li.quest/v1/quote: quotes for transfers between chains, at the market's prices. A quote holds a transaction for LI.FI's
 * contract (a diamond), which the sandbox's chain has at the same address.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Address, encodeFunctionData, isAddress, numberToHex, pad, parseAbi, zeroAddress } from 'viem';
import { type ChainName, type Coin, findToken, NATIVE_COIN } from './assets.ts';
import { type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const CHAINS: Readonly<Record<string, Exclude<ChainName, 'solana'>>> = {
  '1': 'ethereum',
  '8453': 'base',
  '137': 'polygon',
  '42161': 'arbitrum',
  '10': 'optimism',
  '56': 'bsc',
};
const DIAMOND: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE';
const ABI = parseAbi([
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'function startBridgeTokensViaSandbox(BridgeData bridgeData, bytes extra) payable',
]);
const FEE = 0.0012;

interface Known {
  address: Address;
  symbol: string;
  decimals: number;
  coin: Coin;
}

export function lifi(app: FastifyInstance, { market, nowMs }: World): void {
  function tokenOf(chain: Exclude<ChainName, 'solana'>, written: string): Known | undefined {
    if (written.toLowerCase() === zeroAddress) {
      const coin = market.coin(NATIVE_COIN[chain]);
      return coin && { address: zeroAddress, symbol: coin.symbol, decimals: 18, coin };
    }
    const token = findToken(chain, written);
    const coin = token === undefined ? undefined : market.coin(token.coin);
    if (token === undefined || coin === undefined) return undefined;
    return { address: token.address as Address, symbol: token.symbol, decimals: token.decimals, coin };
  }

  app.get<{ Querystring: Query }>('/quote', ({ query }, reply) => {
    const read = (name: string) => textOf(query, name) ?? '';
    const [from, to] = [CHAINS[read('fromChain')], CHAINS[read('toChain')]];
    const sender = read('fromAddress');
    const receiver = read('toAddress') || sender;
    if (
      from === undefined ||
      to === undefined ||
      !isAddress(sender, { strict: false }) ||
      !isAddress(receiver, { strict: false })
    ) {
      return refuse(reply, 400, 1011, 'Invalid request');
    }
    if (!/^[1-9]\d{0,77}$/.test(read('fromAmount'))) return refuse(reply, 400, 1011, 'fromAmount is invalid');
    const [sent, received] = [tokenOf(from, read('fromToken')), tokenOf(to, read('toToken'))];
    if (sent === undefined || received === undefined)
      return refuse(reply, 404, 1002, 'No available quotes for the requested transfer');
    const amount = BigInt(read('fromAmount'));
    const slippage = Number(read('slippage') || 0.005);
    const fromUsd = (Number(amount) / 10 ** sent.decimals) * market.priceUsd(sent.coin, nowMs());
    const toUsd = fromUsd * (1 - FEE);
    const units = toUsd / market.priceUsd(received.coin, nowMs());
    const toAmount = (BigInt(Math.floor(units * 1e6)) * 10n ** BigInt(received.decimals)) / 1_000_000n;
    if (toAmount === 0n) return refuse(reply, 404, 1002, 'No available quotes for the requested transfer');
    const toAmountMin = (toAmount * BigInt(Math.round((1 - slippage) * 1e6))) / 1_000_000n;
    const isNative = sent.address === zeroAddress;
    const data = encodeFunctionData({
      abi: ABI,
      functionName: 'startBridgeTokensViaSandbox',
      args: [
        {
          transactionId: pad(numberToHex(Math.floor(nowMs())), { size: 32 }),
          bridge: 'sandbox',
          integrator: 'sandbox',
          referrer: zeroAddress,
          sendingAssetId: sent.address,
          receiver,
          minAmount: amount,
          destinationChainId: BigInt(read('toChain')),
          hasSourceSwaps: false,
          hasDestinationCall: false,
        },
        '0x',
      ],
    });
    const shown = (token: Known, chain: string) => ({
      address: token.address,
      chainId: Number(chain),
      symbol: token.symbol,
      decimals: token.decimals,
      name: token.coin.name,
      priceUSD: String(market.priceUsd(token.coin, nowMs())),
    });
    return {
      id: `sandbox-${Math.floor(nowMs())}`,
      type: 'lifi',
      tool: 'sandbox',
      toolDetails: { key: 'sandbox', name: 'Sandbox bridge' },
      action: {
        fromChainId: Number(read('fromChain')),
        toChainId: Number(read('toChain')),
        fromToken: shown(sent, read('fromChain')),
        toToken: shown(received, read('toChain')),
        fromAmount: amount.toString(),
        slippage,
        fromAddress: sender,
        toAddress: receiver,
      },
      estimate: {
        tool: 'sandbox',
        approvalAddress: DIAMOND,
        fromAmount: amount.toString(),
        toAmount: toAmount.toString(),
        toAmountMin: toAmountMin.toString(),
        executionDuration: 12,
        fromAmountUSD: fromUsd.toFixed(4),
        toAmountUSD: toUsd.toFixed(4),
        feeCosts: [{ name: 'LP fee', amountUSD: (fromUsd * FEE).toFixed(4), included: true }],
        gasCosts: [{ type: 'SEND', amountUSD: '0.004' }],
      },
      includedSteps: [],
      transactionRequest: {
        from: sender,
        to: DIAMOND,
        chainId: Number(read('fromChain')),
        data,
        value: numberToHex(isNative ? amount : 0n),
        gasLimit: '0x4c4b4',
        gasPrice: '0x5b8d80',
      },
    };
  });
}

function refuse(reply: FastifyReply, status: number, code: number, message: string) {
  return reply.code(status).send({ message, code });
}

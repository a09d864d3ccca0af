import { chainName, outsiderText, tokenAddress } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { CHAINS } from '@farebox/core/words/chain-names';
import { noAnswer, notFound } from '@farebox/core/words/failure';
import { formatUnits, getAddress, type Hex, isAddress } from 'viem';
import { z } from 'zod';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { readTokens } from '../shared/chain/chain-token.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';

/** How a chain's own coin is written where a token's address is asked for. */
const NATIVE_COIN = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee';
/** An account of a person that acts through somebody's code (EIP-7702). */
const DELEGATION = '0xef0100';

export default defineService({
  path: 'token-metadata',
  name: 'Token Metadata Lookup',
  tag: 'Trading Intelligence',
  priceUsd: '0.10',
  mpp: true,
  summary: 'Name, symbol, decimals and total supply of a token, as its contract on an EVM chain says now.',
  keywords:
    'erc20 erc-20 contract coin ticker symbol name decimals digits places supply total circulating how many exist info details address',
  input: z.object({
    tokenAddress: tokenAddress.describe(
      'Contract of the token, 0x and 40 hex digits; 0xEeee…EEeE means the chain’s own coin',
    ),
    chain: chainName,
  }),
  output: z.object({
    name: outsiderText(100).nullable().describe('Name of the token; null where it has none'),
    symbol: outsiderText(60).nullable().describe('Ticker; null where nobody knows it'),
    decimals: z.number().int().nullable().describe('Decimal places of the smallest unit'),
    totalSupply: z.string().nullable().describe('In the smallest unit'),
    totalSupplyFormatted: z.string().nullable().describe('In whole tokens, exactly'),
    address: z.string().describe('Address of the token'),
    chain: z.enum(CHAINS).describe('The chain, by name'),
    chainId: z.number().int().describe('EIP-155 id of the chain'),
    isNative: z.boolean().describe('True for the coin of the chain, which has no contract'),
    blockNumber: z.number().int().describe('Where all of it was read'),
  }),
  example: { tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain: 'base' },
  aliases: {
    token: 'tokenAddress',
    address: 'tokenAddress',
    contractAddress: 'tokenAddress',
    contract: 'tokenAddress',
    chainId: 'chain',
    network: 'chain',
  },
  needs: [EVM_CHAIN_NAMES],
  async run({ tokenAddress: written, chain: name }, { upstreams }) {
    const { chain, blockNumber, source } = await namedChain(name, upstreams);
    if (!isAddress(written, { strict: false })) {
      throw noAnswer('OTHER_KIND_OF_ADDRESS', `${written} is no address of ${name}.`, 'tokenAddress');
    }
    const place = { chain: name, chainId: chain.chainId, blockNumber: Number(blockNumber) };

    if (written.toLowerCase() === NATIVE_COIN) {
      return answer(
        {
          ...place,
          name: chain.nativeSymbol,
          symbol: chain.nativeSymbol,
          decimals: 18,
          totalSupply: null,
          totalSupplyFormatted: null,
          address: getAddress(written),
          isNative: true,
        },
        {
          method: 'The coin of the chain has no contract: its decimals are fixed by the protocol.',
          sources: [source],
          notes: ['totalSupply is null: a node does not know how much of the chain’s own coin there is.'],
        },
      );
    }

    const address = getAddress(written);
    const [code, tokens] = await Promise.all([
      chain.client.getCode({ address, blockNumber }),
      readTokens(chain, [address], blockNumber),
    ]);
    if (!isContract(code)) {
      throw notFound('tokenAddress', `There is no contract at ${address} on ${name}.`);
    }
    const token = tokens.get(address.toLowerCase());
    if (token === undefined || (token.decimals === null && token.totalSupply === null)) {
      throw noAnswer(
        'NOT_A_TOKEN',
        `The contract at ${address} on ${name} has neither decimals nor a total supply: it is no ERC-20 token.`,
        'tokenAddress',
      );
    }
    const { decimals, totalSupply } = token;
    const silent = (['name', 'symbol', 'decimals', 'totalSupply'] as const).filter(
      (field) => token[field] === null,
    );
    return answer(
      {
        ...place,
        name: token.name,
        symbol: token.symbol,
        decimals,
        totalSupply: totalSupply === null ? null : String(totalSupply),
        totalSupplyFormatted:
          totalSupply === null || decimals === null ? null : formatUnits(totalSupply, decimals),
        address,
        isNative: false,
      },
      {
        method: 'name(), symbol(), decimals() and totalSupply() of the contract at one block.',
        sources: [source],
        notes: [
          ...(silent.length === 0 ? [] : [`The contract does not say its ${silent.join(', ')}.`]),
          'Any contract may give itself any name and symbol: only the address tells tokens apart.',
        ],
      },
    );
  },
});

function isContract(code: Hex | undefined): boolean {
  return code !== undefined && code !== '0x' && !code.toLowerCase().startsWith(DELEGATION);
}

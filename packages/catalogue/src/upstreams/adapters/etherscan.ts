import { type Address, isAddress, isAddressEqual } from 'viem';
import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import { wireNumber } from '../wire-number.ts';

/** How many of a wallet's first transactions are looked through for one that it sent itself. */
const FIRST_TRANSACTIONS = 1_000;
const LAST_BLOCK = 9_999_999_999;

const transaction = z.looseObject({
  blockNumber: wireNumber.pipe(z.number().int().nonnegative()),
  /** Seconds since 1970. */
  timeStamp: wireNumber.pipe(z.number().int().positive()),
  from: z.string().refine((value) => isAddress(value, { strict: false })),
});
const transactions = z.union([
  z.looseObject({ status: z.literal('1'), result: z.array(transaction).max(FIRST_TRANSACTIONS) }),
  // A wallet without transactions: an empty list, under the status of a failure.
  z.looseObject({ status: z.literal('0'), result: z.array(z.never()) }),
  // Plans cover some chains only. Any other refusal is a failure of the source.
  z.looseObject({
    status: z.literal('0'),
    result: z.string().regex(/not supported|upgrade|missing or unsupported chainid/i),
  }),
]);

/** The first transaction that a wallet sent, as an index of a chain has it. */
export type FirstSent =
  | { known: true; blockNumber: bigint; timestampMs: number }
  | { known: false; why: 'none_sent' | 'chain_not_covered' };

/**
 * Etherscan's index of transactions, for every chain by its EIP-155 id. Blockscout answers the same requests.
 * https://docs.etherscan.io/api-reference/endpoint/txlist
 */
export const etherscan = defineUpstream({
  name: 'etherscan',
  title: 'Etherscan',
  baseUrl: 'https://api.etherscan.io/v2',
  licence: 'Etherscan APIs, under its terms',
  terms: {
    commercialUse: 'unknown',
    note: 'Free keys cover some chains only.',
    attribution: null,
    url: 'https://etherscan.io/terms',
  },
  documentation: {
    at: 'https://docs.etherscan.io/resources/rate-limits',
    readOn: '2026-11-29',
  },
  key: 'required',
  keyFrom: 'https://etherscan.io/apis',
  authorize: (apiKey) => ({ query: { apikey: apiKey } }),
  // A free key is good for three in any second.
  requestsPerMinute: 120,
  burst: 1,
  patienceMs: 2_000,
  open: (http) => ({
    /** The first transaction that a wallet sent, among the first thousand that it took part in. */
    async firstSent(chainId: number, wallet: Address): Promise<Reply<FirstSent>> {
      const { value, source } = await http.get({
        path: '/api',
        query: {
          chainid: chainId,
          module: 'account',
          action: 'txlist',
          address: wallet,
          startblock: 0,
          endblock: LAST_BLOCK,
          page: 1,
          offset: FIRST_TRANSACTIONS,
          sort: 'asc',
        },
        schema: transactions,
        freshMs: 3_600_000,
        staleMs: 24 * 3_600_000,
      });
      return { value: firstOf(value, wallet), source };
    },
  }),
  probe: (api) => api.firstSent(1, '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'),
});

function firstOf({ result }: z.output<typeof transactions>, wallet: Address): FirstSent {
  if (typeof result === 'string') return { known: false, why: 'chain_not_covered' };
  const sent = result
    .filter(({ from }) => isAddress(from, { strict: false }) && isAddressEqual(from, wallet))
    .sort((a, b) => a.blockNumber - b.blockNumber);
  const [first] = sent;
  if (first === undefined) return { known: false, why: 'none_sent' };
  return { known: true, blockNumber: BigInt(first.blockNumber), timestampMs: first.timeStamp * 1_000 };
}

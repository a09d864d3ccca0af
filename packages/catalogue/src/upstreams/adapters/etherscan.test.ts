/** An index of transactions, as Etherscan and Blockscout answer. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { overTheWire } from '../wire-server.fixture.ts';
import { etherscan } from './etherscan.ts';

const WALLET = '0x1111111111111111111111111111111111111111';
const OTHER = '0x2222222222222222222222222222222222222222';
const PATH = '/api';
const KEY = 'secret-of-the-index';
const sent = (blockNumber: number, from = WALLET) => ({
  blockNumber: String(blockNumber),
  timeStamp: String(1_700_000_000 + blockNumber),
  hash: `0x${'a'.repeat(64)}`,
  from,
  to: OTHER,
  value: '0',
});
const ok = (result: unknown) => ({ status: '1', message: 'OK', result });

describe('Etherscan', () => {
  it('tells the first transaction that the wallet sent itself', async () => {
    const body = ok([sent(5, OTHER), sent(9, WALLET.toUpperCase().replace('0X', '0x')), sent(12)]);
    await overTheWire(
      etherscan,
      [{ path: PATH, body }],
      async (api, asked) => {
        const { value, source } = await api.firstSent(8453, WALLET);
        assert.deepEqual(value, { known: true, blockNumber: 9n, timestampMs: 1_700_000_009_000 });
        const [{ url } = { url: new URL('http://none') }] = asked;
        const sentAs = ['chainid', 'action', 'address', 'sort', 'apikey'].map((name) =>
          url.searchParams.get(name),
        );
        assert.deepEqual(sentAs, ['8453', 'txlist', WALLET, 'asc', KEY]);
        assert(!source.url.includes(KEY));
      },
      KEY,
    );
  });

  const UNKNOWN: [what: string, body: unknown, why: string][] = [
    ['a wallet that only received', ok([sent(5, OTHER)]), 'none_sent'],
    [
      'a wallet without transactions',
      { status: '0', message: 'No transactions found', result: [] },
      'none_sent',
    ],
    [
      'a chain that the plan leaves out',
      {
        status: '0',
        message: 'NOTOK',
        result: 'Free API access is not supported for this chain. Please upgrade.',
      },
      'chain_not_covered',
    ],
  ];
  for (const [what, body, why] of UNKNOWN) {
    it(`knows nothing of ${what}`, async () => {
      const ask = (api: ReturnType<typeof etherscan.open>) => api.firstSent(8453, WALLET);
      const { value } = await overTheWire(etherscan, [{ path: PATH, body }], ask, KEY);
      assert.deepEqual(value, { known: false, why });
    });
  }

  for (const body of [
    { status: '0', message: 'NOTOK', result: 'Max rate limit reached' },
    { status: '0', message: 'NOTOK', result: 'Invalid API Key' },
    ok([{ ...sent(1), timeStamp: '0' }]),
    ok([{ ...sent(1), from: 'nobody' }]),
    ok('text'),
    [],
  ]) {
    it(`takes ${JSON.stringify(body).slice(0, 60)} for no answer`, async () => {
      const ask = (api: ReturnType<typeof etherscan.open>) => api.firstSent(8453, WALLET);
      await assert.rejects(
        overTheWire(etherscan, [{ path: PATH, body }], ask, KEY),
        (error) => error instanceof UpstreamUnavailable && error.reason === 'invalid_reply',
      );
    });
  }
});

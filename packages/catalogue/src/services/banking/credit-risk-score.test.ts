import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { BaseError, type Hex, numberToHex, parseEther } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { down, type FakeUpstreams } from '../run-context.fixture.ts';
import { listsOf, party } from '../shared/screening/lists.fixture.ts';
import {
  buy,
  ETH,
  pricesOf,
  USDC_COIN,
  WALLET,
  walletContext,
} from '../shared/wallet/wallet-context.fixture.ts';
import creditRiskScore from './credit-risk-score.ts';

const AAVE_POOL = '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5';
const LISTED = '0x5a4db0c515ed0000000000000000000000000001';
const lists = listsOf({
  'ofac-sdn': [party('1', 'SANDBOX LISTED 1', { addresses: [{ asset: 'ETH', address: LISTED }] })],
});

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
  await chain.client.setBalance({ address: WALLET, value: parseEther('0.5') });
});
after(() => chain.stop());

interface Told {
  score: number;
  tier: string;
  factors: { factor: string; points: number | null; because: string }[];
  positiveFactors: string[];
  defi: { aave: Record<string, number | null> } | null;
  history: Record<string, unknown>;
  sanctioned: boolean;
}

async function rate(
  body: Record<string, unknown>,
  using = lists,
  now = Date.now(),
  more: FakeUpstreams = {},
) {
  const prices = pricesOf({ [ETH]: 2_000, [USDC_COIN]: 1 }, now);
  const made = await buy(creditRiskScore, body, {
    ...walletContext(chain, { defillama: prices, ...more }, now),
    lists: using,
  });
  const fits = creditRiskScore.output.safeParse(made.fields);
  assert(fits.success, fits.error?.message);
  return { ...(made.fields.data as unknown as Told), notes: made.notes.join(' ') };
}

/** Code that returns these words to any call. */
function answering(words: readonly bigint[]): Hex {
  const stores = words.map(
    (word, at) =>
      `7f${numberToHex(word, { size: 32 }).slice(2)}60${(at * 32).toString(16).padStart(2, '0')}52`,
  );
  return `0x${stores.join('')}60${(words.length * 32).toString(16)}6000f3`;
}

describe('credit-risk-score', () => {
  it('asks the lending pool itself, which knows nothing of this wallet', async () => {
    const { defi } = await rate({ walletAddress: WALLET });
    assert.deepEqual(
      [defi?.aave.collateralUsd, defi?.aave.debtUsd, defi?.aave.healthFactor, defi?.aave.liquidations],
      [0, 0, null, 0],
    );
    // The following tests are about a chain without the pool, and about what a pool may return.
    await chain.client.setCode({ address: AAVE_POOL, bytecode: '0x' });
  });

  it('reads means and history from the chain; a wallet that has sent nothing is a thin file', async () => {
    const told = await rate({ walletAddress: WALLET });
    assert.equal(told.tier, 'Thin file');
    // 0.5 ETH at 2,000 USD: 40 x log10(1001) = 120.
    assert.deepEqual([told.history.holdingsUsd, told.score], [1_000, 120]);
    assert.equal(told.defi, null);
    // It cannot be known that it was never liquidated, so there are no points for that, and no praise.
    assert.equal(told.factors.find(({ factor }) => factor === 'NO_LIQUIDATIONS')?.points, null);
    assert.deepEqual(told.positiveFactors, ['HOLDINGS']);
    assert.match(told.notes, /Aave v3 does not answer on base/);
    const { accounts } = chain;
    assert.notEqual((await rate({ walletAddress: accounts.faucet.address })).score, told.score);
  });

  it('reads a lending position, and leaves it out when it is not asked for', async () => {
    const before = await rate({ walletAddress: WALLET });
    const [collateral, debt, health] = [1_000n * 10n ** 8n, 250n * 10n ** 8n, 32n * 10n ** 17n];
    await chain.client.setCode({
      address: AAVE_POOL,
      bytecode: answering([collateral, debt, 0n, 8_000n, 7_500n, health]),
    });
    const told = await rate({ walletAddress: WALLET });
    const { aave } = told.defi ?? { aave: {} };
    assert.deepEqual(
      [aave.collateralUsd, aave.debtUsd, aave.healthFactor, aave.liquidations],
      [1_000, 250, 3.2, 0],
    );
    // Health factor above 2: 250; no liquidation: 200.
    assert.equal(told.score, before.score + 450);
    assert.equal((await rate({ walletAddress: WALLET, includeDefi: false })).score, before.score);
    await chain.client.setCode({
      address: AAVE_POOL,
      bytecode: answering([collateral, 0n, 0n, 8_000n, 7_500n, 2n ** 256n - 1n]),
    });
    assert.equal((await rate({ walletAddress: WALLET })).defi?.aave.healthFactor, null);
    // With a node that lets nobody search its events, no liquidation is known and none is ruled out.
    const { base } = chain.upstreams;
    const silent = async () => {
      throw new BaseError('eth_getLogs is not served');
    };
    const mute = { ...base, client: { ...base.client, getLogs: silent } as typeof base.client };
    const unsearched = await rate({ walletAddress: WALLET }, lists, Date.now(), { base: mute });
    assert.equal(unsearched.defi?.aave.liquidations, null);
    assert.equal(unsearched.factors.find(({ factor }) => factor === 'NO_LIQUIDATIONS')?.points, null);
    await chain.client.setCode({ address: AAVE_POOL, bytecode: '0x' });
  });

  it('counts its age in days', async () => {
    const { faucet } = chain.accounts;
    const account = privateKeyToAccount(faucet.privateKey);
    const hash = await chain.client.sendTransaction({ account, to: WALLET, value: 0n });
    await chain.client.waitForTransactionReceipt({ hash });
    const { history } = await rate({ walletAddress: faucet.address });
    const firstMs = Date.parse(String(history.firstActivityAt));
    const later = await rate({ walletAddress: faucet.address }, lists, firstMs + 50 * 86_400_000 + 3_600_000);
    assert.equal(later.history.ageDays, 50);
  });

  it('gives a listed wallet 0', async () => {
    const told = await rate({ walletAddress: LISTED });
    assert.deepEqual([told.score, told.tier, told.sanctioned], [0, 'Sanctioned', true]);
  });

  it('is not answered without prices or by an old list', async () => {
    const unavailable = (error: unknown) => error instanceof ServiceFailure && error.status === 503;
    await assert.rejects(rate({ walletAddress: WALLET }, listsOf({ 'ofac-sdn': 'old' })), unavailable);
    const context = { ...walletContext(chain, { defillama: { currentPrices: down('defillama') } }), lists };
    await assert.rejects(buy(creditRiskScore, { walletAddress: WALLET }, context), unavailable);
  });
});

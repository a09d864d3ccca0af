import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { listsOf, party } from '../shared/screening/lists.fixture.ts';
import { WALLET, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import fraudDetection from './fraud-detection.ts';

const LISTED = '0x5a4db0c515ed0000000000000000000000000001';
const lists = listsOf({
  'ofac-sdn': [party('1', 'SANDBOX LISTED 1', { addresses: [{ asset: 'ETH', address: LISTED }] })],
});

const MERCHANT = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65';

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
});
after(() => chain.stop());

interface Told {
  fraudScore: number;
  riskLevel: string;
  features: { code: string; contribution: number | null; because: string }[];
  listMatches: { uid: string; address: string }[];
  requiresHumanReview: boolean;
  confidenceScore: number;
  fieldsRead: string[];
}

async function look(body: Record<string, unknown>, using = lists, now = Date.now()) {
  const input = fraudDetection.input.parse(fraudDetection.adapt?.(body) ?? body);
  const made = await fraudDetection.run(input, { ...walletContext(chain, {}, now), lists: using });
  assert.equal(fraudDetection.output.safeParse(made.fields).success, true);
  return { ...(made.fields.data as unknown as Told), notes: made.notes.join(' '), sources: made.sources };
}

const refusedWith = (status: number, field?: string, code?: string) => (error: unknown) =>
  error instanceof ServiceFailure &&
  error.status === status &&
  (field === undefined || error.field === field) &&
  (code === undefined || error.code === code);

describe('fraud-detection', () => {
  it('takes the transaction as the whole body, as clients send it', async () => {
    const bare = await look({ amount: '9,800', currency: 'USD', merchant: MERCHANT });
    const wrapped = await look({ transactionData: { amount: 9_800, currency: 'USD', merchant: MERCHANT } });
    assert.deepEqual(bare.features, wrapped.features);
    assert.deepEqual(bare.fieldsRead.sort(), ['amount', 'currency', 'merchant']);
  });

  it('looks a wallet up on its chain, and a counterparty in the lists', async () => {
    const fresh = await look({ address: WALLET, chain: 'base' });
    assert.equal(fresh.features.find(({ code }) => code === 'NEW_WALLET')?.contribution, 10);
    assert(fresh.sources.some(({ name }) => name === 'base'));
    const listed = await look({ amount: 5, to: LISTED.toUpperCase().replace('0X', '0x') });
    assert.deepEqual(
      [listed.fraudScore, listed.riskLevel, listed.requiresHumanReview],
      [100, 'Critical', true],
    );
    assert.equal(listed.listMatches[0]?.uid, '1');
  });

  it('counts the age of a wallet in days', async () => {
    const account = privateKeyToAccount(chain.accounts.faucet.privateKey);
    const { address } = account;
    const hash = await chain.client.sendTransaction({ account, to: WALLET, value: 0n });
    await chain.client.waitForTransactionReceipt({ hash });
    const newWallet = async (days: number) => {
      const { features } = await look({ address, chain: 'base' }, lists, Date.now() + days * 86_400_000);
      return features.find(({ code }) => code === 'NEW_WALLET');
    };
    const [young, old] = [await newWallet(3), await newWallet(400)];
    assert.match(young?.because ?? '', /\b3 days/);
    assert((young?.contribution ?? 0) > 0);
    assert.equal(old?.contribution, 0);
  });

  it('does not judge mixing services without a list of them, nor a dollar threshold for another currency', async () => {
    const of = async (body: Record<string, unknown>, code: string) =>
      (await look(body, listsOf({ 'ofac-sdn': [] }))).features.find((each) => each.code === code);
    const to = MERCHANT;
    assert.equal((await of({ amount: 5, to }, 'MIXER_COUNTERPARTY'))?.contribution, null);
    const near = { amount: 9_800, to };
    assert.equal((await of({ ...near, currency: 'USD' }, 'JUST_BELOW_THRESHOLD'))?.contribution, 10);
    assert.equal((await of({ ...near, currency: 'JPY' }, 'JUST_BELOW_THRESHOLD'))?.contribution, null);
  });

  it('says of each feature that was not evaluated why', async () => {
    const { features, confidenceScore } = await look({ amount: 20, to: MERCHANT });
    const silent = features.filter(({ contribution }) => contribution === null);
    assert(silent.length > 5 && silent.every(({ because }) => because.startsWith('not evaluated: ')));
    assert(confidenceScore < 0.5);
  });

  it('has no verdict below 30 % of its weights, and says what is missing', async () => {
    for (const body of [{ amount: 1 }, { amount: 9_800, currency: 'USD', merchant: 'shop' }]) {
      await assert.rejects(look(body), (error) => {
        assert(error instanceof ServiceFailure);
        assert.deepEqual(
          [error.status, error.code, error.field],
          [422, 'INSUFFICIENT_DATA', 'transactionData'],
        );
        assert.match(error.message, /30 % are the least.*LISTED_COUNTERPARTY \(no address was given/);
        return true;
      });
    }
    // A payment by card names no address: its history is enough. 25 + 20 + 10 + 10 + 5 of 225 are 31.1 %.
    const transactionData = {
      amount: 43,
      currency: 'USD',
      merchant: 'shop',
      timestamp: '2026-11-20T12:00:00Z',
    };
    const historicalPatterns = [40, 55, 38, 61, 47].map((amount, day) => ({
      amount,
      merchant: 'shop',
      timestamp: `2026-11-1${day}T12:00:00Z`,
    }));
    const told = await look({ transactionData, historicalPatterns });
    assert.deepEqual([told.riskLevel, told.confidenceScore], ['Low', 0.311]);
  });

  it('refuses what it cannot read, with the field', async () => {
    assert(!fraudDetection.input.safeParse({ transactionData: { colour: 'red' } }).success);
    assert(!fraudDetection.input.safeParse(fraudDetection.adapt?.({}) ?? {}).success);
    await assert.rejects(look({ amount: 'much' }), refusedWith(422, 'transactionData.amount'));
    await assert.rejects(look({ amount: -5 }), refusedWith(422, 'transactionData.amount', 'NOT_AN_AMOUNT'));
    await assert.rejects(
      look({ timestamp: 'yesterday' }),
      refusedWith(422, 'transactionData.timestamp', 'NOT_A_TIME'),
    );
    await assert.rejects(
      look({ transactionData: { amount: 5 }, historicalPatterns: [{ amount: 1 }, { amount: 'x' }] }),
      refusedWith(422, 'historicalPatterns.1.amount'),
    );
    await assert.rejects(look({ address: WALLET, chain: 'ethereum' }), refusedWith(422));
  });

  it('is not answered by an old list', async () => {
    await assert.rejects(look({ amount: 5 }, listsOf({ 'ofac-sdn': 'old' })), refusedWith(503));
  });
});

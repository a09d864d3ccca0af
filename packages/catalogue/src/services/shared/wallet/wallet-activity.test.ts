/** How old a wallet is: by the node where it keeps old state, and by an index of transactions where it does not. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parseEther } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../../apps/shop/test/chain.fixture.ts';
import { sourceUnavailable } from '../../../../../core/src/words/failure.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { notConfigured, reply } from '../../run-context.fixture.ts';
import { type PrunedNode, startPrunedNode } from './pruned-node.fixture.ts';
import { walletActivity } from './wallet-activity.ts';
import { headOf } from './wallet-chains.ts';
import { WALLET } from './wallet-context.fixture.ts';

type FirstSent = Upstreams['etherscan']['firstSent'];
const FIRST = { known: true, blockNumber: 7n, timestampMs: 1_600_000_000_000 } as const;

let chain: TestChain;
let pruned: PrunedNode;
let sender: `0x${string}`;
/** Before this block the pruned node knows nothing. */
let head: bigint;
before(async () => {
  chain = await startTestChain();
  const account = privateKeyToAccount(chain.accounts.faucet.privateKey);
  sender = account.address;
  const { client } = chain;
  const hash = await client.sendTransaction({ account, to: WALLET, value: parseEther('1') });
  await client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
  await client.mine({ blocks: 5 });
  ({ number: head } = await client.getBlock());
  pruned = await startPrunedNode(chain.url, head);
});
after(async () => {
  await pruned.stop();
  await chain.stop();
});

/** The activity by a node, with every question to the index noted. */
async function activityBy(node: Upstreams['base'], wallet: `0x${string}`, firstSent: FirstSent) {
  const asked: unknown[][] = [];
  const etherscan = {
    firstSent: (...question: Parameters<FirstSent>) => {
      asked.push(question);
      return firstSent(...question);
    },
  };
  const activity = await walletActivity(await headOf(node), wallet, { etherscan });
  return { activity, asked };
}

const indexed: FirstSent = async () => reply('etherscan', FIRST);

describe('the first transaction of a wallet', () => {
  it('is told by the index where the node has pruned its history, and so is that', async () => {
    const { activity, asked } = await activityBy(pruned.base, sender, indexed);
    assert.deepEqual(asked, [[8453, sender]]);
    assert.deepEqual(activity.first, { blockNumber: 7n, timestampMs: 1_600_000_000_000 });
    assert.deepEqual(
      activity.sources.map(({ name }) => name),
      ['etherscan'],
    );
    assert.match(activity.notes.join(' '), /told by Etherscan: the node keeps no old state/);
    assert(activity.transactions > 0, 'what is of today is the node’s');
  });

  it('is the node’s own where it keeps its history: no index is asked', async () => {
    const { base } = chain.upstreams;
    assert(base !== undefined);
    const { activity, asked } = await activityBy(base, sender, indexed);
    assert.deepEqual([asked, activity.sources, activity.notes], [[], [], []]);
    const { first } = activity;
    assert(first !== null);
    const [at, before] = await Promise.all([
      chain.client.getTransactionCount({ address: sender, blockNumber: first.blockNumber }),
      chain.client.getTransactionCount({ address: sender, blockNumber: first.blockNumber - 1n }),
    ]);
    assert(at > 0);
    assert.equal(before, 0);
  });

  it('is none for a wallet that never sent anything, whatever an index says', async () => {
    const { activity, asked } = await activityBy(pruned.base, WALLET, indexed);
    assert.deepEqual([asked, activity.first], [[], null]);
    assert.match(activity.notes.join(' '), /has sent no transaction on this chain/);
  });

  for (const [what, firstSent, told] of [
    [
      'is not configured',
      notConfigured('etherscan'),
      /no index of transactions is configured \(UPSTREAM_ETHERSCAN_API_KEY\)/,
    ],
    [
      'does not answer',
      async () => {
        throw sourceUnavailable('etherscan', 'upstream_down', 'Etherscan did not answer');
      },
      /the index of transactions is upstream down/,
    ],
    [
      'does not cover the chain',
      async () => reply('etherscan', { known: false, why: 'chain_not_covered' } as const),
      /the plan of the index does not cover this chain/,
    ],
    [
      'knows none that it sent',
      async () => reply('etherscan', { known: false, why: 'none_sent' } as const),
      /none of its first transactions in the index was sent by it/,
    ],
  ] as const satisfies readonly (readonly [string, FirstSent, RegExp])[]) {
    it(`is unknown, and not zero, where the index ${what}`, async () => {
      const { activity } = await activityBy(pruned.base, sender, firstSent);
      assert.deepEqual([activity.first, activity.sources], [null, []]);
      assert.match(activity.notes.join(' '), told);
      assert.match(activity.notes.join(' '), /does not keep the state of old blocks/);
    });
  }
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { erc20Abi, type Hash, parseAbi, parseAbiItem, parseEther } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { down } from '../run-context.fixture.ts';
import { buy, pricesOf, USDC_COIN, WALLET, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import whaleAlerts from './whale-alerts.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const WETH = '0x4200000000000000000000000000000000000006';
const PRICES = { [USDC_COIN]: 1.01, [`base:${WETH}`]: 2_000 };
const ZERO = '0x0000000000000000000000000000000000000000';

interface Alert {
  token: string;
  amount: string;
  valueUsd: number;
  direction: string;
  from: string;
  to: string;
  txHash: string;
  logIndex: number;
  blockNumber: number;
  timestamp: string;
}

let chain: TestChain;
let faucet: ReturnType<typeof privateKeyToAccount>;
before(async () => {
  chain = await startTestChain();
  const { client, accounts } = chain;
  faucet = privateKeyToAccount(accounts.faucet.privateKey);
  const deployer = privateKeyToAccount(accounts.deployer.privateKey);
  // What building the chain left behind is older than any window.
  await client.mine({ blocks: 400 });
  await send(70_000n);
  await send(49_000n);
  await send(49_600n);
  const mint = parseAbi(['function mint(address to, uint256 amount) returns (bool)']);
  const minted = [faucet.address, 90_000_000_000n] as const;
  await mined(
    await client.writeContract({
      abi: mint,
      address: USDC,
      functionName: 'mint',
      account: deployer,
      args: minted,
    }),
  );
  await client.setBalance({ address: faucet.address, value: parseEther('200') });
  await mined(
    await client.writeContract({
      abi: parseAbi(['function deposit() payable']),
      address: WETH,
      functionName: 'deposit',
      account: faucet,
      value: parseEther('60'),
    }),
  );
  await mined(
    await client.writeContract({
      abi: erc20Abi,
      address: WETH,
      functionName: 'transfer',
      account: faucet,
      args: [WALLET, parseEther('60')],
    }),
  );
  await client.mine({ blocks: 30 });
});
after(() => chain.stop());

async function send(usdc: bigint): Promise<void> {
  const transfer = { abi: erc20Abi, address: USDC, functionName: 'transfer' } as const;
  const hash = await chain.client.writeContract({
    ...transfer,
    account: faucet,
    args: [WALLET, usdc * 1_000_000n],
  });
  await mined(hash);
}

async function mined(hash: Hash): Promise<void> {
  await chain.client.waitForTransactionReceipt({ hash, pollingInterval: 5 });
}

const context = (prices: Record<string, number> = PRICES) =>
  walletContext(chain, { defillama: pricesOf(prices) });

describe('whale alerts', () => {
  it('reports the same transfers as an independent look at the same blocks, the largest first', async () => {
    const [{ fields, sources }, head] = await chain.still(
      async () => [await buy(whaleAlerts, {}, context()), await chain.client.getBlock()] as const,
    );
    assert.equal(whaleAlerts.output.safeParse(fields).error, undefined);
    const alerts = fields.alerts as Alert[];
    // 49,600 USDC at 1.01 is above 50,000 USD, 49,000 is not.
    assert.deepEqual(
      alerts.map(({ token, amount, valueUsd, direction }) => [token, amount, valueUsd, direction]),
      [
        ['WETH', '60', 120_000, 'transfer'],
        ['USDC', '90000', 90_900, 'mint'],
        ['USDC', '70000', 70_700, 'transfer'],
        ['USDC', '49600', 50_096, 'transfer'],
      ],
    );
    const [scanned, ...others] = fields.scanned as {
      chain: string;
      fromBlock: number;
      toBlock: number;
      transfers: number;
      tokens: string[];
    }[];
    assert(scanned !== undefined && others.length === 0);
    assert.deepEqual([scanned.chain, scanned.tokens], ['base', ['WETH', 'USDC']]);

    const logs = await chain.client.getLogs({
      address: [USDC, WETH],
      event: parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)'),
      fromBlock: BigInt(scanned.fromBlock),
      toBlock: BigInt(scanned.toBlock),
    });
    assert.equal(scanned.transfers, logs.length);
    assert.equal(BigInt(scanned.toBlock), head.number);
    for (const alert of alerts) {
      const log = logs.find((one) => one.transactionHash === alert.txHash && one.logIndex === alert.logIndex);
      assert.deepEqual(
        [log?.args.from, log?.args.to, Number(log?.blockNumber)],
        [alert.from, alert.to, alert.blockNumber],
      );
      const block = await chain.client.getBlock({ blockNumber: BigInt(alert.blockNumber) });
      assert.equal(Date.parse(alert.timestamp), Number(block.timestamp) * 1_000);
    }
    assert.equal(alerts.find(({ direction }) => direction === 'mint')?.from, ZERO);
    assert.deepEqual(
      sources.map(({ name }) => name),
      ['base', 'defillama'],
    );
  });

  it('keeps to the limit and the threshold, and tells how much more there was', async () => {
    const body = { chains: ['base'], minValueUsd: 60_000, limit: 2 };
    const { fields, notes } = await buy(whaleAlerts, body, context());
    assert.deepEqual(
      [fields.count, fields.totalFound, fields.thresholdUsd, (fields.alerts as Alert[]).length],
      [2, 3, 60_000, 2],
    );
    assert.match(notes.join(' '), /1 more transfers are above the threshold/);
  });

  it('looks through the events of the window only', async () => {
    await chain.client.mine({ blocks: 200 });
    const { fields } = await buy(whaleAlerts, { chain: 'base' }, context());
    const [scanned] = fields.scanned as { fromBlock: number; toBlock: number; transfers: number }[];
    assert.deepEqual([fields.alerts, fields.totalFound, scanned?.transfers], [[], 0, 0]);
    assert.equal((scanned?.toBlock ?? 0) - (scanned?.fromBlock ?? 0) + 1, 150);
    await send(60_000n);
    const again = await buy(whaleAlerts, { chain: 'base', tokenAddress: USDC.toLowerCase() }, context());
    assert.deepEqual(
      (again.fields.alerts as Alert[]).map(({ amount }) => amount),
      ['60000'],
    );
  });

  it('does not value what has no sure price, nor scan what it cannot read', async () => {
    const { fields, notes } = await buy(
      whaleAlerts,
      { chains: ['base', 'bsc', 'solana'] },
      context({ [USDC_COIN]: 1 }),
    );
    assert.deepEqual(
      (fields.scanned as { chain: string; tokens: string[]; error: string | null }[]).map((one) => [
        one.chain,
        one.tokens,
        one.error,
      ]),
      [
        ['base', ['USDC'], null],
        ['bsc', [], 'not_configured'],
        ['solana', [], 'not_evm'],
      ],
    );
    assert.match(notes.join(' '), /not watched for want of a contract or a sure price: WETH/);

    const reject = (body: unknown, expected: object, prices: Record<string, number> = PRICES) =>
      assert.rejects(buy(whaleAlerts, body, context(prices)), expected);
    await reject(
      { chain: 'bsc' },
      { status: 422, code: 'NO_CHAIN_TO_READ', message: /Configured are: base\./ },
    );
    await reject({ chain: 'base', tokenAddress: WALLET }, { status: 404, field: 'tokenAddress' });
    await reject({ chain: 'base', tokenAddress: USDC }, { code: 'TOKEN_NOT_PRICED' }, {});
    await reject({}, { status: 422, message: /base \(no token priced\)/ }, {});
    const priceless = walletContext(chain, { defillama: { currentPrices: down('defillama') } });
    await assert.rejects(buy(whaleAlerts, {}, priceless), { status: 503 });
    assert.equal(whaleAlerts.input.safeParse({ tokenAddress: USDC }).success, false);
  });
});

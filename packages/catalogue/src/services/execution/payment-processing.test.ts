import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { decodeFunctionData, erc20Abi, type Hex, parseTransaction } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { buy, ETH, pricesOf, WALLET, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import paymentProcessing from './payment-processing.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const ORACLE = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
const POOR = '0x2222222222222222222222222222222222222222';
const SOLANA_WALLET = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM';

interface Payment {
  status: string;
  amount: string | null;
  amountRaw: string | null;
  transaction: { to: string; value: Hex; data: Hex; gas?: Hex; from?: string; nonce?: number } | null;
  unsignedSerialized: `0x02${string}` | null;
  paymentUri: string | null;
  simulation: { success: boolean; revertReason: string | null } | null;
  estimatedFeeUsd: number | null;
  recipientSanctioned: boolean | null;
  paymentOptions: {
    currency: string;
    chain: string;
    contract: string;
    decimals: number;
    payTo: string | null;
  }[];
}

let chain: TestChain;
let faucet: ReturnType<typeof privateKeyToAccount>;
before(async () => {
  chain = await startTestChain();
  faucet = privateKeyToAccount(chain.accounts.faucet.privateKey);
});
after(() => chain.stop());

async function prepare(body: Record<string, unknown>) {
  const context = walletContext(chain, { defillama: pricesOf({ [ETH]: 2_000 }) });
  const { fields, notes, sources } = await buy(paymentProcessing, body, context);
  assert.equal(paymentProcessing.output.safeParse(fields).error, undefined);
  return { ...(fields as unknown as Payment), notes: notes.join(' '), sources };
}

const balanceOf = (address: `0x${string}`) =>
  chain.client.readContract({ abi: erc20Abi, address: USDC, functionName: 'balanceOf', args: [address] });

describe('payment processing', () => {
  it('makes a payment that moves exactly the amount once its payer has signed it, and nothing before', async () => {
    const body = { amount: '12.50', recipient: WALLET, chain: 'base', fromAddress: faucet.address };
    const payment = await prepare(body);
    assert.deepEqual([payment.status, payment.amount, payment.amountRaw], ['unsigned', '12.5', '12500000']);
    assert.deepEqual(payment.simulation, { success: true, revertReason: null });
    assert.equal(await balanceOf(WALLET), 0n);

    assert(payment.unsignedSerialized !== null);
    const serializedTransaction = await faucet.signTransaction(parseTransaction(payment.unsignedSerialized));
    const hash = await chain.client.sendRawTransaction({ serializedTransaction });
    const receipt = await chain.client.waitForTransactionReceipt({ hash });
    assert.equal(receipt.status, 'success');
    assert.equal(await balanceOf(WALLET), 12_500_000n);
    assert(
      (payment.estimatedFeeUsd ?? 0) >= (Number(receipt.gasUsed * receipt.effectiveGasPrice) / 1e18) * 2_000,
    );
  });

  it('without a payer gives the transfer, its URI and the gas it takes', async () => {
    const payment = await prepare({ amount: 3, recipient: POOR, chain: 8453 });
    assert(payment.transaction !== null);
    const { to, value, data, gas, from, nonce } = payment.transaction;
    assert.deepEqual(
      [to, value, from, nonce, payment.unsignedSerialized],
      [USDC, '0x0', undefined, undefined, null],
    );
    assert.deepEqual(decodeFunctionData({ abi: erc20Abi, data }), {
      functionName: 'transfer',
      args: [POOR, 3_000_000n],
    });
    // As EIP-681 writes a token transfer.
    assert.equal(payment.paymentUri, `ethereum:${USDC}@8453/transfer?address=${POOR}&uint256=3000000`);

    const pay = { account: faucet, to: USDC, data } as const;
    const receipt = await chain.client.waitForTransactionReceipt({
      hash: await chain.client.sendTransaction(pay),
    });
    // The pretended payer took what a real one takes, to a few hundred gas for the zeros in the addresses.
    const tried = Number(gas) / 1.2;
    assert(Math.abs(tried / Number(receipt.gasUsed) - 1) < 0.02, `${tried} against ${receipt.gasUsed}`);
    assert((payment.estimatedFeeUsd ?? 0) > 0);
    assert.match(payment.notes, /measured with a pretended payer/);
  });

  it('tells when the payer cannot pay', async () => {
    const body = { amount: '1', recipient: WALLET, chain: 'base', fromAddress: POOR };
    await chain.client.setBalance({ address: POOR, value: 10n ** 18n });
    const rich = await prepare({ ...body, amount: '4' });
    assert.deepEqual(rich.simulation, {
      success: false,
      revertReason: 'ERC20: transfer amount exceeds balance',
    });
    assert.deepEqual(
      [rich.unsignedSerialized, rich.estimatedFeeUsd, rich.transaction?.gas],
      [null, null, undefined],
    );
  });

  it('asks the sanctions oracle where there is one, and has null where there is none', async () => {
    const body = { amount: '1', recipient: WALLET, chain: 'base' };
    const own = await chain.client.getCode({ address: ORACLE });
    await chain.client.setCode({ address: ORACLE, bytecode: '0x' });
    const unasked = await prepare(body);
    assert.equal(unasked.recipientSanctioned, null);
    assert.match(unasked.notes, /recipientSanctioned is null: base has no sanctions oracle/);

    // An oracle that lists exactly one address: returns whether the argument equals it.
    const listing = (listed: string): Hex => `0x60043573${listed.slice(2)}1460005260206000f3`;
    await chain.client.setCode({ address: ORACLE, bytecode: listing(POOR) });
    assert.equal((await prepare(body)).recipientSanctioned, false);
    const refused = { status: 422, code: 'ADDRESS_SANCTIONED' };
    await assert.rejects(prepare({ ...body, recipient: POOR }), { ...refused, field: 'recipient' });
    await assert.rejects(prepare({ ...body, fromAddress: POOR }), { ...refused, field: 'fromAddress' });
    await chain.client.setCode({ address: ORACLE, bytecode: own ?? '0x' });
    assert.equal((await prepare(body)).recipientSanctioned, false);
  });

  it('tells a merchant where USDC can be paid, and claims nothing about the merchant', async () => {
    const answer = await prepare({ merchantId: 'm-1', paymentType: 'crypto', currencies: ['USDC', 'ETH'] });
    assert.deepEqual(answer.paymentOptions, [
      { currency: 'USDC', chain: 'base', contract: USDC, decimals: 6, payTo: null },
    ]);
    assert.deepEqual([answer.status, answer.transaction, answer.amount], ['unsigned', null, null]);
    assert.match(answer.notes, /not: ETH/);
    assert.deepEqual(
      answer.sources.map(({ name }) => name),
      ['base'],
    );
    const unpayable = { merchantId: 'm-1', currencies: ['EUR'] };
    await assert.rejects(prepare(unpayable), { code: 'CURRENCY_NOT_SUPPORTED' });
    await assert.rejects(prepare({ merchantId: 'm-1', chain: 'bsc' }), { code: 'CHAIN_NOT_CONFIGURED' });
  });

  it('makes a Solana Pay request on solana', async () => {
    const payment = await prepare({ amount: '0.10', recipient: SOLANA_WALLET, chain: 'solana' });
    assert.equal(
      payment.paymentUri,
      `solana:${SOLANA_WALLET}?amount=0.1&spl-token=EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v`,
    );
    assert.deepEqual([payment.transaction, payment.recipientSanctioned], [null, null]);
  });

  it('takes the smallest unit by its own name, and says both', async () => {
    for (const [chainOf, recipient] of [
      ['base', POOR],
      ['solana', SOLANA_WALLET],
    ]) {
      const whole = await prepare({ amount: '12.5', recipient, chain: chainOf });
      const raw = await prepare({ amountRaw: '12500000', recipient, chain: chainOf });
      assert.deepEqual([raw.amount, raw.amountRaw, raw.paymentUri], ['12.5', '12500000', whole.paymentUri]);
    }
  });

  it('refuses what cannot be paid', async () => {
    const body = { amount: '1', recipient: WALLET, chain: 'base' };
    const rejects = (change: object, expected: object) =>
      assert.rejects(prepare({ ...body, ...change }), { status: 422, ...expected });
    await rejects({ amount: '0.0000001' }, { code: 'AMOUNT_TOO_FINE' });
    await rejects({ recipient: USDC }, { code: 'RECIPIENT_UNUSABLE' });
    await rejects({ recipient: `0x${'0'.repeat(40)}` }, { code: 'RECIPIENT_UNUSABLE' });
    await rejects({ currency: 'USDT' }, { code: 'CURRENCY_NOT_SUPPORTED' });
    await rejects({ chain: 'polygon' }, { code: 'CHAIN_NOT_CONFIGURED' });
    const accepts = (input: unknown) => paymentProcessing.input.safeParse(input).success;
    assert.ok(accepts(body) && accepts({ merchantId: 'm' }) && accepts({ ...body, amount: 1.5 }));
    for (const wrong of [
      {},
      { amount: '1' },
      { amount: '1', recipient: WALLET },
      { ...body, amount: '0' },
      { ...body, amountRaw: '1' },
      { ...body, amount: undefined, amountRaw: '0' },
      { ...body, amount: undefined, amountRaw: '1.5' },
      { ...body, amount: undefined, amountRaw: '1'.repeat(34) },
      { merchantId: 'm', amountRaw: '1' },
      { ...body, amount: -1 },
      { ...body, amount: '1e3' },
      { ...body, amount: 1e-7 },
      { ...body, chain: 'solana' },
      { ...body, recipient: SOLANA_WALLET },
      { merchantId: 'm', amount: '1' },
    ]) {
      assert.equal(accepts(wrong), false, JSON.stringify(wrong));
    }
  });
});

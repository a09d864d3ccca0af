import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodeFunctionData, erc20Abi, type Hex, parseAbi, parseEther, parseTransaction } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { down } from '../run-context.fixture.ts';
import { buy, ETH, pricesOf, WALLET, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import transactionBuilder from './transaction-builder.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const ORACLE = '0x420000000000000000000000000000000000000F';

interface Built {
  transaction: {
    chainId: number;
    from: string;
    to: string;
    value: Hex;
    data: Hex;
    nonce: number;
    gas: Hex | null;
    maxFeePerGas: Hex;
    maxPriorityFeePerGas: Hex;
    type: number;
  };
  gasEstimate: number | null;
  gasEstimateUsd: number | null;
  simulation: { success: boolean; revertReason: string | null };
  unsignedSerialized: `0x02${string}` | null;
  preflight: { verdict: string; findings: { pattern: string }[] } | null;
}

let chain: TestChain;
let faucet: ReturnType<typeof privateKeyToAccount>;
before(async () => {
  chain = await startTestChain();
  faucet = privateKeyToAccount(chain.accounts.faucet.privateKey);
});
after(() => chain.stop());

async function build(body: Record<string, unknown>) {
  const context = walletContext(chain, { defillama: pricesOf({ [ETH]: 2_000 }) });
  const request = { fromAddress: faucet.address, toAddress: WALLET, chain: 'base', ...body };
  const { fields, notes } = await buy(transactionBuilder, request, context);
  assert.equal(transactionBuilder.output.safeParse(fields).error, undefined);
  return { ...(fields as unknown as Built), notes: notes.join(' ') };
}

/** Signs what was sold, with the sender's key, and sends it. */
async function signAndSend({ unsignedSerialized }: Built) {
  assert(unsignedSerialized !== null);
  const serializedTransaction = await faucet.signTransaction(parseTransaction(unsignedSerialized));
  const hash = await chain.client.sendRawTransaction({ serializedTransaction });
  return chain.client.waitForTransactionReceipt({ hash });
}

describe('transaction builder', () => {
  it('builds a transfer that its sender only has to sign', async () => {
    const { client } = chain;
    const [built, { baseFeePerGas }] = await chain.still(
      async () =>
        [
          await build({ value: '250000000000000000' }),
          await client.getBlock({ blockTag: 'pending' }),
        ] as const,
    );
    const { transaction } = built;
    assert.deepEqual(
      [transaction.chainId, transaction.from, transaction.to, transaction.data, transaction.type],
      [8453, faucet.address, WALLET, '0x', 2],
    );
    assert.equal(transaction.nonce, await client.getTransactionCount({ address: faucet.address }));
    assert.equal(BigInt(transaction.gas ?? '0x0'), 21_000n);
    assert.equal(
      BigInt(transaction.maxFeePerGas),
      2n * (baseFeePerGas ?? 0n) + BigInt(transaction.maxPriorityFeePerGas),
    );
    // 21,000 gas at the next base fee and the tip, and what the oracle of the chain asks for the data; ETH at 2,000 USD.
    const l1Fee = await client.readContract({
      address: ORACLE,
      abi: parseAbi(['function getL1Fee(bytes data) view returns (uint256)']),
      functionName: 'getL1Fee',
      args: [built.unsignedSerialized ?? '0x'],
    });
    const feeWei = 21_000n * ((baseFeePerGas ?? 0n) + BigInt(transaction.maxPriorityFeePerGas)) + l1Fee;
    assert(Math.abs((built.gasEstimateUsd ?? Number.NaN) - (Number(feeWei) / 1e18) * 2_000) <= 0.5e-6);

    const before = await client.getBalance({ address: WALLET });
    const receipt = await signAndSend(built);
    assert.equal(receipt.status, 'success');
    assert.equal((await client.getBalance({ address: WALLET })) - before, parseEther('0.25'));
  });

  it('turns tokenAddress into a transfer of that token, and gives gas a margin', async () => {
    const built = await build({ tokenAddress: USDC.toLowerCase(), value: 7_000_000 });
    assert.deepEqual(
      [built.transaction.to, built.transaction.value, built.transaction.data],
      [
        USDC,
        '0x0',
        encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [WALLET, 7_000_000n] }),
      ],
    );
    const receipt = await signAndSend(built);
    assert.equal(receipt.status, 'success');
    const balance = { abi: erc20Abi, address: USDC, functionName: 'balanceOf', args: [WALLET] } as const;
    assert.equal(await chain.client.readContract(balance), 7_000_000n);
    assert(receipt.gasUsed <= BigInt(built.gasEstimate ?? 0));
    assert.equal(Number(built.transaction.gas), Math.floor((built.gasEstimate ?? 0) * 1.2));
  });

  it('holds what it builds against the check that is sold, and gives the verdict with it', async () => {
    const approving = encodeFunctionData({
      abi: erc20Abi,
      functionName: 'approve',
      args: [WALLET, 2n ** 256n - 1n],
    });
    const approved = await build({ toAddress: USDC, data: approving });
    assert.equal(approved.preflight?.verdict, 'danger');
    assert.ok(approved.preflight?.findings.some(({ pattern }) => pattern === 'approval_to_account'));
    assert.equal((await build({ value: '1000' })).preflight?.verdict, 'safe');
  });

  it('tells why a call would fail, and measures nothing then', async () => {
    const poor = '0x2222222222222222222222222222222222222222';
    const built = await build({ fromAddress: poor, tokenAddress: USDC, value: '1' });
    // The words of Circle's contract.
    assert.deepEqual(built.simulation, {
      success: false,
      revertReason: 'ERC20: transfer amount exceeds balance',
    });
    assert.deepEqual(
      [built.transaction.gas, built.gasEstimate, built.gasEstimateUsd, built.unsignedSerialized],
      [null, null, null, null],
    );
    const broke = await build({ fromAddress: poor, value: '1' });
    assert.deepEqual(broke.simulation, {
      success: false,
      revertReason: 'the sender has less than the value it would send',
    });
  });

  it('builds nothing for a sanctioned sender or recipient, also of tokens in the call data', async () => {
    const oracle = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
    const code = (await chain.client.getCode({ address: oracle })) ?? '0x';
    // An oracle that lists exactly one address: returns whether the argument equals it.
    const lists = (address: string) =>
      chain.client.setCode({ address: oracle, bytecode: `0x60043573${address.slice(2)}1460005260206000f3` });
    const inData = (functionName: 'transfer' | 'approve', amount = 1n) => ({
      toAddress: USDC,
      data: encodeFunctionData({ abi: erc20Abi, functionName, args: [WALLET, amount] }),
    });
    const refused = (field: string, errorCode = 'RECIPIENT_SANCTIONED') => ({
      status: 422,
      code: errorCode,
      field,
    });
    try {
      await lists(WALLET);
      await assert.rejects(build({ value: '1' }), refused('toAddress'));
      await assert.rejects(build({ tokenAddress: USDC, value: '1' }), refused('toAddress'));
      await assert.rejects(build(inData('transfer')), refused('data'));
      await assert.rejects(build(inData('approve')), refused('data'));
      assert.equal((await build(inData('approve', 0n))).simulation.success, true);
      await lists(faucet.address);
      await assert.rejects(build({ value: '1' }), refused('fromAddress', 'SENDER_SANCTIONED'));
      await lists(oracle);
      assert.equal((await build(inData('transfer'))).simulation.success, true);
      await chain.client.setCode({ address: oracle, bytecode: '0x' });
      assert.match((await build({ value: '1' })).notes, /not held against sanctions lists/);
    } finally {
      await chain.client.setCode({ address: oracle, bytecode: code });
    }
  });

  it('warns of what is likely a mistake', async () => {
    const poor = '0x2222222222222222222222222222222222222222';
    assert.match((await build({ data: '0x12345678' })).notes, /no contract at 0x1111.*data does nothing/);
    assert.match((await build({ fromAddress: poor })).notes, /sender's 0 wei do not cover/);
    const toItself = await build({ toAddress: USDC, tokenAddress: USDC, value: '1' });
    assert.match(toItself.notes, /token's own contract/);
    assert.deepEqual(
      [toItself.simulation.success, toItself.simulation.revertReason],
      // USDC itself does not let it happen.
      [false, 'Blacklistable: account is blacklisted'],
    );
  });

  it('has null for the fee in USD when nobody knows a price, and answers all the same', async () => {
    const context = walletContext(chain, { defillama: { currentPrices: down('defillama') } });
    const body = { fromAddress: faucet.address, toAddress: WALLET, chain: 8453 };
    const { fields, notes } = await buy(transactionBuilder, body, context);
    assert.deepEqual([fields.gasEstimateUsd, fields.gasEstimate], [null, 21_000]);
    assert.match(notes.join(' '), /fee in USD is null/);
  });

  it('refuses what it cannot build', async () => {
    const rejects = (body: Record<string, unknown>, expected: object) =>
      assert.rejects(build(body), expected);
    await rejects({ chain: 'polygon' }, { status: 422, message: /polygon is not configured.*are: base\./ });
    await rejects({ chain: 'solana' }, { status: 422, code: 'CHAIN_NOT_SUPPORTED' });
    await rejects({ tokenAddress: WALLET }, { status: 404, field: 'tokenAddress' });
    const accepts = (body: Record<string, unknown>) =>
      transactionBuilder.input.safeParse({ fromAddress: WALLET, toAddress: WALLET, chain: 'base', ...body })
        .success;
    assert.ok(accepts({}) && accepts({ value: '0x10', data: '' }));
    for (const wrong of [
      { value: '1.5' },
      { value: -1 },
      { value: String(2n ** 256n) },
      { data: '0x123' },
      { data: 'hello' },
      { toAddress: USDC.replace('fC', 'Fc') },
      { tokenAddress: USDC, data: '0x12' },
    ]) {
      assert.equal(accepts(wrong), false, JSON.stringify(wrong));
    }
  });
});

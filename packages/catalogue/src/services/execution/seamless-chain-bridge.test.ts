import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { decodeFunctionData, encodeFunctionData, type Hex, pad, parseAbi, zeroAddress } from 'viem';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { fund } from '../../../../sandbox/src/chain/faucet.ts';
import type { LifiQuote } from '../../upstreams/adapters/lifi.ts';
import { down, type FakeUpstreams, reply, runContext } from '../run-context.fixture.ts';
import { burnFee, TOKEN_MESSENGER } from '../shared/chain/bridge-burn.ts';
import { LIFI_DIAMOND } from '../shared/chain/bridge-quote.ts';
import seamlessChainBridge from './seamless-chain-bridge.ts';

const FROM = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65';
const TO = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const THIEF = '0x90F79bf6EB2c4f870365E785982E1f101E93b906';
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const ORACLE = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
const BURN = parseAbi([
  'function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken, bytes32 destinationCaller, uint256 maxFee, uint32 minFinalityThreshold)',
]);
const BRIDGE = parseAbi([
  'struct BridgeData { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'function startBridgeTokensViaSandbox(BridgeData bridgeData, bytes extra) payable',
]);
const ETH_ARB = {
  fromChain: 'base',
  toChain: 'arbitrum',
  token: 'ETH',
  amount: '0.01',
  fromAddress: FROM,
  recipient: TO,
};
const USDC_ARB = {
  fromChain: 'base',
  toChain: 'arbitrum',
  token: 'USDC',
  amount: '100',
  fromAddress: FROM,
  recipient: TO,
};

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
  await fund(chain.url, FROM, { usdcMicros: 500_000_000n, ethWei: 10n ** 18n });
});
after(() => chain.stop());

const circle: FakeUpstreams = {
  cctp: {
    fees: async () => reply('cctp', { fastBasisPoints: 1.3, finalBasisPoints: 0 }),
    fastAllowance: async () => reply('cctp', { allowance: 1_000 }),
  },
};
const run = (body: Record<string, unknown>, fakes: FakeUpstreams = circle) =>
  seamlessChainBridge.run(
    seamlessChainBridge.input.parse(body),
    runContext({ ...fakes, ...chain.upstreams } as FakeUpstreams),
  );

/** Works with nothing at this address. */
async function withoutCode(address: Hex, work: () => Promise<void>): Promise<void> {
  const code = (await chain.client.getCode({ address })) ?? assert.fail(`there is no code at ${address}`);
  await chain.client.setCode({ address, bytecode: '0x' });
  try {
    await work();
  } finally {
    await chain.client.setCode({ address, bytecode: code });
  }
}

interface Made {
  amount: string;
  amountRaw: string;
  transaction: { to: string; data: Hex | null; value: Hex; chainId: number; gas: Hex | null };
  approval: { to: string; data: Hex; needed: boolean | null } | null;
  template: { arguments: Record<string, string | null> } | null;
  quote: Record<string, unknown>;
  simulation: { success: boolean; revertReason: string | null; assumes: string | null } | null;
  recipient: string | null;
  preflight: { verdict: string; findings: { pattern: string }[] } | null;
}
const made = async (body: Record<string, unknown>, fakes?: FakeUpstreams) => {
  const answer = await run(body, fakes);
  const fits = seamlessChainBridge.output.safeParse(answer.fields);
  assert(fits.success, fits.error?.message);
  return { ...(answer.fields as unknown as Made), notes: answer.notes.join(' ') };
};

describe('USDC by Circle', () => {
  it('is a burn for the recipient, with the fee rounded up, and does what it says when it is sent', async () => {
    const { transaction, approval, quote, simulation, preflight } = await made(USDC_ARB);
    // The approval is signed first: of the amount alone, to Circle's own contract.
    assert.deepEqual(
      [preflight?.verdict, preflight?.findings.map(({ pattern }) => pattern)],
      ['safe', ['approval']],
    );
    const { args } = decodeFunctionData({ abi: BURN, data: transaction.data ?? '0x' });
    // 1.3 basis points of 100 USDC are 13,000 millionths; a fifth more is offered.
    assert.deepEqual(args, [100_000_000n, 3, pad(TO.toLowerCase() as Hex), USDC, pad('0x'), 15_600n, 1_000]);
    assert.deepEqual(
      [quote.outputAmount, quote.minOutputAmount, quote.provider],
      ['99.987', '99.9844', 'cctp'],
    );
    assert.deepEqual(
      [approval?.needed, simulation],
      [true, { success: true, revertReason: null, assumes: 'that approval has been mined' }],
    );
    const from = { account: FROM, chain: null } as const;
    await chain.client.impersonateAccount({ address: FROM });
    for (const each of [approval, transaction]) {
      const hash = await chain.client.sendTransaction({
        ...from,
        to: each?.to as Hex,
        data: each?.data as Hex,
      });
      assert.equal((await chain.client.waitForTransactionReceipt({ hash })).status, 'success');
    }
    const held = await chain.client.readContract({
      address: USDC,
      abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
      functionName: 'balanceOf',
      args: [FROM],
    });
    assert.equal(held, 400_000_000n);
  });

  it('takes the smallest unit by its own name, and says both', async () => {
    const { amount: _, ...body } = USDC_ARB;
    const [whole, raw] = [await made(USDC_ARB), await made({ ...body, amountRaw: '100000000' })];
    assert.deepEqual(
      [raw.amount, raw.amountRaw, raw.transaction.data],
      ['100', '100000000', whole.transaction.data],
    );
    assert.deepEqual([whole.amount, whole.amountRaw], ['100', '100000000']);
    for (const wrong of [body, { ...USDC_ARB, amountRaw: '1' }, { ...body, amountRaw: '0' }])
      assert.equal(seamlessChainBridge.input.safeParse(wrong).success, false);
  });

  it('says why it would fail, when the sender has too little', async () => {
    const { simulation, transaction } = await made({ ...USDC_ARB, amount: '900' });
    assert.equal(simulation?.success, false);
    assert.match(simulation?.revertReason ?? '', /exceeds balance/);
    assert.equal(transaction.gas, null);
  });

  it('has a template without a recipient, and never an address of its own', async () => {
    const { transaction, template, recipient, notes } = await made({
      fromChain: 'base',
      toChain: 'arbitrum',
      token: USDC,
      amount: 100,
    });
    assert.deepEqual([transaction.data, recipient, template?.arguments.mintRecipient], [null, null, null]);
    assert.equal(template?.arguments.amount, '100000000');
    assert.match(notes, /simulation is null/);
    const own = await made({ ...USDC_ARB, recipient: undefined });
    assert.equal(own.recipient, FROM);
    const contract = await made({ ...USDC_ARB, recipient: undefined, fromAddress: USDC });
    assert.deepEqual([contract.recipient, contract.transaction.data], [null, null]);
  });

  it('is refused where recipient or sender is sanctioned, and says so where no oracle answers', async () => {
    const code = (await chain.client.getCode({ address: ORACLE })) ?? '0x';
    // An oracle that lists exactly one address: returns whether the argument equals it.
    const lists = (address: string) =>
      chain.client.setCode({ address: ORACLE, bytecode: `0x60043573${address.slice(2)}1460005260206000f3` });
    try {
      await lists(TO);
      const refused = { status: 422, code: 'RECIPIENT_SANCTIONED', field: 'recipient' };
      await assert.rejects(run(USDC_ARB), refused);
      await assert.rejects(run(ETH_ARB, by(honest())), refused);
      await assert.rejects(run({ ...USDC_ARB, fromAddress: undefined }), refused);
      await lists(FROM);
      await assert.rejects(run({ ...USDC_ARB, recipient: undefined }), refused);
      await assert.rejects(run(USDC_ARB), { status: 422, code: 'SENDER_SANCTIONED', field: 'fromAddress' });
      await lists(THIEF);
      assert.notEqual((await made(USDC_ARB)).transaction.data, null);
      await chain.client.setCode({ address: ORACLE, bytecode: '0x' });
      assert.match(
        (await made(USDC_ARB)).notes,
        /not held against sanctions lists: there is no oracle on base/,
      );
    } finally {
      await chain.client.setCode({ address: ORACLE, bytecode: code });
    }
  });

  it('waits for finality where nothing may go fast, and takes no more than one burn', async () => {
    const much = await made({ ...USDC_ARB, amount: '2000' });
    const { args } = decodeFunctionData({ abi: BURN, data: much.transaction.data ?? '0x' });
    assert.deepEqual([args[5], args[6]], [0n, 2_000]);
    assert.match(much.notes, /Only 1000 USDC may go fast/);
    const slow: FakeUpstreams = {
      cctp: {
        ...circle.cctp,
        fees: async () => reply('cctp', { fastBasisPoints: null, finalBasisPoints: 0 }),
      },
    };
    assert.match((await made(USDC_ARB, slow)).notes, /no fast transfer/);
    await assert.rejects(run({ ...USDC_ARB, amount: '10000001' }), {
      status: 422,
      code: 'AMOUNT_TOO_LARGE',
      field: 'amount',
    });
    await assert.rejects(run({ ...USDC_ARB, amount: '1.0000001' }), { status: 422, field: 'amount' });
    await assert.rejects(run(USDC_ARB, { cctp: { fees: down('cctp') } }), { status: 503 });
  });

  it('rounds fees against the sender, by hand', () => {
    assert.deepEqual(burnFee(1n, 1), { feeMicros: 1n, maxFeeMicros: 2n });
    assert.deepEqual(burnFee(10_000_000_000_000n, 1.3), {
      feeMicros: 1_300_000_000n,
      maxFeeMicros: 1_560_000_000n,
    });
    assert.deepEqual(burnFee(5n, 0), { feeMicros: 0n, maxFeeMicros: 0n });
  });
});

/** A quote that does what was asked, with its data. */
function honest(
  change: { receiver?: Hex; amount?: bigint; chainId?: bigint; call?: boolean; token?: Hex } = {},
): LifiQuote {
  const amount = 10n ** 16n;
  const token = { address: zeroAddress, symbol: 'ETH', decimals: 18 };
  const data = encodeFunctionData({
    abi: BRIDGE,
    functionName: 'startBridgeTokensViaSandbox',
    args: [
      {
        transactionId: pad('0x1'),
        bridge: 'test',
        integrator: 'test',
        referrer: zeroAddress,
        sendingAssetId: change.token ?? zeroAddress,
        receiver: change.receiver ?? TO,
        minAmount: change.amount ?? amount,
        destinationChainId: change.chainId ?? 42_161n,
        hasSourceSwaps: false,
        hasDestinationCall: change.call ?? false,
      },
      '0x',
    ],
  });
  return {
    id: 'id',
    type: 'lifi',
    tool: 'test',
    action: {
      fromChainId: 8453,
      toChainId: 42_161,
      fromToken: token,
      toToken: token,
      fromAmount: amount,
      fromAddress: FROM,
      toAddress: TO,
      slippage: 0.005,
    },
    estimate: {
      fromAmount: amount,
      toAmount: 9_980_000_000_000_000n,
      toAmountMin: 9_940_000_000_000_000n,
      approvalAddress: LIFI_DIAMOND,
      executionDuration: 9,
      fromAmountUSD: 30,
      toAmountUSD: 29.9,
      gasCosts: [],
    },
    transactionRequest: {
      from: FROM,
      to: LIFI_DIAMOND,
      chainId: 8453,
      data,
      value: amount,
      gasLimit: 300_000n,
    },
  };
}
const by = (quote: LifiQuote | null): FakeUpstreams => ({
  lifi: { quote: async () => reply('lifi', quote) },
});

describe('other tokens by LI.FI', () => {
  it('are handed on when everything agrees, and tried out', async () => {
    const { transaction, approval, simulation, quote } = await made(ETH_ARB, by(honest()));
    assert.deepEqual([transaction.to, transaction.value, approval], [LIFI_DIAMOND, '0x2386f26fc10000', null]);
    assert.deepEqual(simulation, { success: true, revertReason: null, assumes: null });
    assert.deepEqual(
      [quote.provider, quote.outputAmount, quote.minOutputAmount],
      ['lifi', '0.00998', '0.00994'],
    );
    assert(Number(transaction.gas) > 21_000);
  });

  const q = honest();
  const LIES: readonly (readonly [what: string, quote: LifiQuote])[] = [
    ['another recipient in the data', honest({ receiver: THIEF })],
    ['another amount in the data', honest({ amount: 10n ** 17n })],
    ['another chain in the data', honest({ chainId: 10n })],
    ['another token in the data', honest({ token: USDC })],
    ['a call at the other end', honest({ call: true })],
    [
      'data that cannot be read',
      { ...q, transactionRequest: { ...q.transactionRequest, data: '0xdeadbeef' } },
    ],
    ['another recipient', { ...q, action: { ...q.action, toAddress: THIEF } }],
    ['another sender', { ...q, action: { ...q.action, fromAddress: THIEF } }],
    ['another token', { ...q, action: { ...q.action, toToken: { ...q.action.toToken, address: USDC } } }],
    ['another amount', { ...q, action: { ...q.action, fromAmount: 1n } }],
    ['another chain', { ...q, action: { ...q.action, toChainId: 10 } }],
    ['more slippage', { ...q, action: { ...q.action, slippage: 0.05 } }],
    ['a least amount of nothing', { ...q, estimate: { ...q.estimate, toAmountMin: 0n } }],
    ['a least amount below the slippage', { ...q, estimate: { ...q.estimate, toAmountMin: 10n ** 15n } }],
    ['a loss of half', { ...q, estimate: { ...q.estimate, toAmountUSD: 15 } }],
    [
      'a contract that is not on the list',
      { ...q, transactionRequest: { ...q.transactionRequest, to: THIEF } },
    ],
    [
      'a transaction for another chain',
      { ...q, transactionRequest: { ...q.transactionRequest, chainId: 10 } },
    ],
    ['ten times the value', { ...q, transactionRequest: { ...q.transactionRequest, value: 10n ** 17n } }],
    ['less than the value', { ...q, transactionRequest: { ...q.transactionRequest, value: 0n } }],
  ];
  for (const [what, quote] of LIES) {
    it(`are refused, and cost nothing: ${what}`, async () => {
      await assert.rejects(run(ETH_ARB, by(quote)), { status: 502, code: 'QUOTE_REFUSED' });
    });
  }

  it('let a token be taken by the listed contract alone', async () => {
    const token = { address: USDC, symbol: 'USDC', decimals: 6 } as const;
    const amount = 5_000_000n;
    const one = honest({ token: USDC, amount, chainId: 56n });
    const erc20: LifiQuote = {
      ...one,
      action: {
        ...one.action,
        toChainId: 56,
        fromToken: token,
        toToken: { ...token, address: '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d' },
        fromAmount: amount,
      },
      estimate: { ...one.estimate, fromAmount: amount, toAmount: 4_990_000n, toAmountMin: 4_970_000n },
      transactionRequest: { ...one.transactionRequest, value: 0n },
    };
    const body = { ...ETH_ARB, toChain: 'bsc', token: 'USDC', amount: '5' };
    const { approval, simulation } = await made(body, by(erc20));
    assert.deepEqual([approval?.needed, simulation], [true, null]);
    const spender = { ...erc20, estimate: { ...erc20.estimate, approvalAddress: THIEF } };
    await assert.rejects(run(body, by(spender)), { status: 502 });
  });

  it('and burns are given out only where the contract that they call is there', async () => {
    const missing = { status: 502, code: 'BRIDGE_MISSING' };
    await withoutCode(LIFI_DIAMOND, () => assert.rejects(run(ETH_ARB, by(honest())), missing));
    await withoutCode(TOKEN_MESSENGER, async () => {
      await assert.rejects(run(USDC_ARB), missing);
      await assert.rejects(run({ ...USDC_ARB, fromAddress: undefined, recipient: undefined }), missing);
    });
    assert.equal((await made(USDC_ARB)).recipient, TO);
  });

  it('need a sender, a recipient, a token that is known and a route', async () => {
    await assert.rejects(run({ ...ETH_ARB, fromAddress: undefined }, by(q)), {
      status: 422,
      code: 'SENDER_NEEDED',
      field: 'fromAddress',
    });
    await assert.rejects(run({ ...ETH_ARB, fromAddress: USDC, recipient: undefined }, by(q)), {
      status: 422,
      code: 'RECIPIENT_NEEDED',
      field: 'recipient',
    });
    await assert.rejects(run({ ...ETH_ARB, token: 'NOPE' }, by(q)), { status: 422, field: 'token' });
    await assert.rejects(run({ ...ETH_ARB, toChain: 'polygon' }, by(q)), { status: 422, field: 'toToken' });
    await assert.rejects(run(ETH_ARB, by(null)), { status: 422, code: 'NO_ROUTE' });
    await assert.rejects(run({ ...ETH_ARB, toChain: 'solana' }, by(q)), { status: 422, field: 'toChain' });
    await assert.rejects(run({ ...ETH_ARB, fromChain: 'ethereum' }, by(q)), { status: 422 });
    assert.equal(seamlessChainBridge.input.safeParse({ ...ETH_ARB, toChain: 'base' }).success, false);
    assert.equal(seamlessChainBridge.input.safeParse({ ...ETH_ARB, amount: '0' }).success, false);
    assert.equal(
      seamlessChainBridge.input.safeParse({
        ...ETH_ARB,
        recipient: '0x70997970c51812dc3A010C7d01b50e0d17dc79C8',
      }).success,
      false,
    );
  });
});

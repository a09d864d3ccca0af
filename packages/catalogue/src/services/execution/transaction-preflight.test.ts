import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, BaseError, concatHex, encodeFunctionData, type Hex, parseAbi } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import type { EvmChain } from '../../upstreams/adapters/evm.ts';
import { type FakeUpstreams, notConfigured, reply } from '../run-context.fixture.ts';
import {
  authorization,
  type Cast,
  call,
  type Fixture,
  heldBack,
  permit,
  seaport,
  TYPES,
  tuned,
  tx,
  typed,
} from '../shared/preflight/signing.fixture.ts';
import { listsOf, party } from '../shared/screening/lists.fixture.ts';
import { buy, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import preflight from './transaction-preflight.ts';

const USDC: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
/** A contract that does nothing, and one that calls USDC with what follows the first four bytes. */
const IDLE: Hex = '0x00';
const FORWARDS: Hex = concatHex(['0x6004360380600460003760006000826000600073', USDC, '0x5af100']);
const FORWARDER: Address = '0x00000000000000000000000000000000f0f0f0f0';

interface Told {
  verdict: string;
  findings: { pattern: string; severity: string; address: string | null; at: string }[];
  balanceChanges:
    | {
        address: string;
        isSigner: boolean;
        token: string | null;
        symbol: string | null;
        changeRaw: string;
        measured: boolean;
      }[]
    | null;
  approvals: { spender: string; isUnlimited: boolean; amountRaw: string | null; by: string }[];
  simulation: { method: string; success: boolean; revertReason: string | null } | null;
  coverage: { check: string; done: boolean; why: string | null }[];
  typedData: { form: string | null; digest: string } | null;
  calls: { at: string; function: string | null }[];
}

let chain: TestChain;
let cast: Cast;
let faucet: ReturnType<typeof privateKeyToAccount>;
before(async () => {
  chain = await startTestChain();
  faucet = privateKeyToAccount(chain.accounts.faucet.privateKey);
  cast = {
    signer: faucet.address,
    thief: '0x00000000000000000000000000000000bad00bad',
    friend: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
    unverified: '0x00000000000000000000000000000000c0de0bad',
    verified: '0x00000000000000000000000000000000c0de0001',
    usdc: USDC,
    nft: '0x0000000000000000000000000000000000000721',
    safe: '0x0000000000000000000000000000000000005afe',
  };
  for (const address of [cast.unverified, cast.verified, cast.nft, cast.safe])
    await chain.client.setCode({ address, bytecode: IDLE });
  await chain.client.setCode({ address: FORWARDER, bytecode: FORWARDS });
  const stubs = [
    '0x2626664c2603336E57B271c5C0b26F421741e481',
    '0x38869bf66a61cF6bDB996A6aE40D5853Fd43B526',
  ] as const;
  for (const address of stubs) await chain.client.setCode({ address, bytecode: IDLE });
  await chain.client.setBalance({ address: cast.safe, value: 10n ** 18n });
});
after(() => chain.stop());

const source = {
  match: 'exact_match',
  verifiedAt: null,
  language: 'Solidity',
  compilerVersion: '0.8',
  contractName: 'X',
  remappings: [],
  sources: {},
};
const register: NonNullable<FakeUpstreams['sourcify']> = {
  contract: async (_, address) =>
    reply(
      'sourcify',
      [cast.verified, cast.safe].some((each) => each.toLowerCase() === address.toLowerCase()) ? source : null,
    ),
};

async function check(
  body: Record<string, unknown>,
  fakes: FakeUpstreams = {},
  lists = listsOf({ 'ofac-sdn': [] }),
) {
  const context = { ...walletContext(chain, { sourcify: register, ...fakes }), lists };
  const { fields } = await buy(preflight, { chain: 'base', from: cast.signer, ...body }, context);
  assert.equal(preflight.output.safeParse(fields).error, undefined);
  return fields as unknown as Told;
}

const patterns = ({ findings }: Told) => findings.map(({ pattern }) => pattern);

async function tryAll(fixtures: readonly Fixture[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const { name, is, pattern, body } of fixtures) {
    const told = await check(body);
    const fits = is === 'danger' ? told.verdict === 'danger' : told.verdict !== 'danger';
    if (!fits) wrong.push(`${name}: ${told.verdict}, ${patterns(told).join(' ')}`);
    if (pattern !== undefined && !patterns(told).includes(pattern))
      wrong.push(`${name}: no ${pattern}, ${patterns(told).join(' ')}`);
  }
  return wrong;
}

describe('transaction preflight', () => {
  it('tells each malicious pattern from its benign twin', async () => {
    assert.deepEqual(await tryAll(tuned(cast)), []);
  });

  it('does so for a set that no rule was written for', async () => {
    assert.deepEqual(await tryAll(heldBack(cast)), []);
  });

  it('calls safe only what was read, simulated and screened to the end', async () => {
    const { friend } = cast;
    for (const body of [
      tx(friend, '0x', 10n ** 15n),
      tx(USDC, call('transfer', friend, 5_000n)),
      tx(USDC, call('approve', cast.thief, 0n)),
      authorization(cast, friend, 1_795_243_000),
    ]) {
      const told = await check(body);
      assert.equal(told.verdict, 'safe', patterns(told).join(' '));
    }
    const sent = await check(tx(USDC, call('transfer', friend, 5_000n)));
    assert.deepEqual(
      sent.balanceChanges?.map(({ address, changeRaw, measured }) => [address, changeRaw, measured]).sort(),
      [
        [friend, '5000', true],
        [cast.signer, '-5000', true],
      ].sort(),
    );
    assert.equal(sent.simulation?.method, 'eth_simulateV1');
    const paid = await check(tx(friend, '0x', 7n));
    assert.deepEqual(
      paid.balanceChanges?.map(({ token, symbol, changeRaw }) => [token, symbol, changeRaw]),
      [
        [null, 'ETH', '-7'],
        [null, 'ETH', '7'],
      ],
    );
  });

  it('is unknown where a call or a signature was not read, and where it would fail', async () => {
    const unread = await check(tx(cast.verified, '0xdeadbeef'));
    assert.equal(unread.verdict, 'unknown');
    assert.deepEqual(
      unread.coverage.find((each) => each.check === 'decoding'),
      { check: 'decoding', done: false, why: '1 call(s) are of functions that are not known.' },
    );
    const lookalike = typed(
      USDC,
      'Permit',
      { Permit: [...TYPES.permit].reverse() },
      {
        ...permit(cast, cast.verified, 1n).typedData.message,
      },
    );
    assert.deepEqual(
      [(await check(lookalike)).verdict, (await check(lookalike)).typedData?.form],
      ['unknown', null],
    );
    const failing = await check({ ...tx(USDC, call('transfer', cast.friend, 1n)), from: cast.friend });
    assert.equal(failing.verdict, 'unknown');
    assert.deepEqual(failing.simulation?.success, false);
    const broke = await check({ ...tx(cast.signer, '0x', 10n ** 30n) });
    assert.match(broke.simulation?.revertReason ?? '', /less than the value/);
    const creation = await check({ transaction: { data: '0x00' } });
    assert.equal(creation.verdict, 'unknown');
  });

  it('is a danger where money goes to an address without code by a call', async () => {
    assert.ok(patterns(await check(tx(cast.thief, '0xdeadbeef', 1n))).includes('no_code_called'));
  });

  it('reads to a bound, and says so', async () => {
    let deep = call('approve', cast.verified, 0n);
    for (let depth = 0; depth < 12; depth += 1) deep = call('multicall', [deep]);
    const wide = call(
      'multicall',
      Array.from({ length: 400 }, () => call('approve', cast.verified, 0n)),
    );
    for (const data of [deep, wide]) {
      const told = await check(tx(cast.verified, data));
      assert.deepEqual([told.verdict, patterns(told).includes('reading_cut')], ['unknown', true]);
    }
    const many = Array.from({ length: 60 }, (_, index) => ({
      target: `0x${(index + 1_000_000).toString(16).padStart(40, '0')}` as Address,
      allowFailure: true,
      callData: call('approve', cast.verified, 0n),
    }));
    const crowd = await check(tx('0xcA11bde05977b3631167028862bE2a173976CA11', call('aggregate3', many)));
    assert.deepEqual([crowd.verdict, patterns(crowd).includes('unchecked_addresses')], ['unknown', true]);
  });

  it('finds by simulation what the data hides: an outflow and an allowance', async () => {
    const wallet = { account: faucet, chain: null } as const;
    const approve = parseAbi(['function approve(address,uint256) returns (bool)']);
    const write = (spender: Address, amount: bigint) =>
      chain.client.writeContract({
        ...wallet,
        address: USDC,
        abi: approve,
        functionName: 'approve',
        args: [spender, amount],
      });
    const taking = concatHex(['0xdeadbeef', call('transferFrom', cast.signer, cast.thief, 1_000_000n)]);
    await chain.client.waitForTransactionReceipt({ hash: await write(FORWARDER, 1_000_000n) });
    try {
      const taken = await check(tx(FORWARDER, taking));
      assert.equal(taken.verdict, 'danger');
      assert.ok(patterns(taken).includes('takes_without_giving'), patterns(taken).join(' '));
      assert.deepEqual(taken.balanceChanges?.find(({ isSigner }) => isSigner)?.changeRaw, '-1000000');
    } finally {
      await chain.client.waitForTransactionReceipt({ hash: await write(FORWARDER, 0n) });
    }
    const message = {
      owner: cast.signer,
      spender: cast.thief,
      value: 9n,
      nonce: 0n,
      deadline: 4_000_000_000n,
    };
    const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC };
    const signature = await faucet.signTypedData({
      domain,
      types: { Permit: TYPES.permit },
      primaryType: 'Permit',
      message,
    });
    const permitting = encodeFunctionData({
      abi: parseAbi(['function permit(address,address,uint256,uint256,bytes)']),
      args: [message.owner, message.spender, message.value, message.deadline, signature],
    });
    const hidden = await check(tx(FORWARDER, concatHex(['0xdeadbeef', permitting])));
    assert.equal(hidden.verdict, 'danger');
    assert.ok(patterns(hidden).includes('hidden_approval'), patterns(hidden).join(' '));
    assert.deepEqual(
      hidden.approvals.map(({ spender, amountRaw, by }) => [spender.toLowerCase(), amountRaw, by]),
      [[cast.thief, '9', 'simulation']],
    );
  });

  it('falls back to a trace and then to eth_call, and says what the node lacks', async () => {
    const traced = await check(tx(USDC, call('transfer', cast.friend, 5n)), {
      base: lacking('eth_simulateV1'),
    });
    assert.deepEqual([traced.simulation?.method, traced.simulation?.success], ['debug_traceCall', true]);
    assert.deepEqual(
      traced.balanceChanges?.map(({ changeRaw, measured }) => [changeRaw, measured]),
      [
        ['-5', false],
        ['5', false],
      ],
    );
    const called = await check(tx(USDC, call('transfer', cast.friend, 5n)), {
      base: lacking('eth_simulateV1', 'debug_traceCall'),
    });
    assert.deepEqual([called.simulation?.method, called.simulation?.success], ['eth_call', true]);
    assert.deepEqual(
      called.balanceChanges?.map(({ address, changeRaw, measured }) => [address, changeRaw, measured]),
      [[cast.signer, '-5', true]],
    );
    assert.notEqual(called.verdict, 'safe');
    assert.match(
      called.coverage.find((each) => each.check === 'simulation')?.why ?? '',
      /eth_simulateV1 and debug_traceCall/,
    );
    const blind = await check(tx(USDC, call('transfer', cast.friend, 5n)), {
      base: lacking('eth_simulateV1', 'debug_traceCall', 'eth_call'),
    });
    assert.deepEqual([blind.verdict, blind.simulation, blind.balanceChanges], ['unknown', null, null]);
    const trace = await check(tx(FORWARDER, '0xdeadbeef', 3n), { base: lacking('eth_simulateV1') });
    assert.deepEqual(
      trace.balanceChanges?.map(({ token, changeRaw }) => [token, changeRaw]),
      [
        [null, '-3'],
        [null, '3'],
      ],
    );
  });

  it('keeps words of a token bounded, out of its sentences, and knows an impostor', async () => {
    const bait = '0x0000000000000000000000000000000000bad721';
    await chain.client.setCode({ address: bait, bytecode: impostor('\u202eUSD\u0421\u0000', cast.thief) });
    const told = await check(tx(bait, '0xdeadbeef'));
    const gained = told.balanceChanges?.find(({ token }) => token?.toLowerCase() === bait);
    assert.deepEqual([gained?.symbol, gained?.measured], ['USD\u0421', true]);
    assert.ok(
      ['impostor_token', 'token_misstates'].every((each) => patterns(told).includes(each)),
      patterns(told).join(' '),
    );
    assert.doesNotMatch(JSON.stringify(told.findings), /USD/);
  });

  it('holds everybody against lists, and says where nobody could be asked', async () => {
    const { friend } = cast;
    const listed = listsOf({
      'ofac-sdn': [party('1', 'X', { addresses: [{ asset: 'ETH', address: friend }] })],
    });
    const body = tx(USDC, call('transfer', friend, 5n));
    assert.ok(patterns(await check(body, {}, listed)).includes('sanctioned'));
    const mixers = listsOf({
      'ofac-sdn': [],
      mixers: [party('1', 'X', { addresses: [{ asset: 'ETH', address: friend }] })],
    });
    assert.deepEqual((await check(body, {}, mixers)).verdict, 'caution');
    const oracle = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
    const code = (await chain.client.getCode({ address: oracle })) ?? '0x';
    try {
      await chain.client.setCode({ address: oracle, bytecode: '0x' });
      const told = await check(body, {}, listsOf({}));
      assert.deepEqual([told.verdict, patterns(told).includes('not_screened')], ['caution', true]);
    } finally {
      await chain.client.setCode({ address: oracle, bytecode: code });
    }
    const silent = await check(permit(cast, cast.verified, 5n), {
      sourcify: { contract: notConfigured('sourcify') },
    });
    assert.equal(silent.verdict, 'unknown');
    assert.equal(silent.coverage.find((each) => each.check === 'published-source')?.done, false);
  });

  it('distrusts what a message says beside its types, its chain and its signer', async () => {
    const good = permit(cast, cast.verified, 5n);
    const patternsOf = async (change: object) =>
      patterns(await check({ typedData: { ...good.typedData, ...change } }));
    assert.ok(
      (await patternsOf({ message: { ...good.typedData.message, note: 'free' } })).includes(
        'undeclared_fields',
      ),
    );
    const domain = good.typedData.domain;
    assert.ok((await patternsOf({ domain: { ...domain, chainId: 1 } })).includes('other_chain'));
    assert.ok((await patternsOf({ domain: { name: 'X', verifyingContract: USDC } })).includes('no_chain'));
    const shown = { ...good.typedData.types, EIP712Domain: [{ name: 'name', type: 'string' }] };
    const unsigned = await patternsOf({ types: shown });
    assert.deepEqual(
      ['undeclared_fields', 'no_chain', 'unread_signature'].filter((each) => !unsigned.includes(each)),
      [],
      'a domain whose contract is shown and not signed',
    );
    const other = { ...good.typedData.message, owner: cast.friend };
    assert.ok((await patternsOf({ message: other })).includes('other_signer'));
    assert.ok(
      patterns(await check(permit(cast, cast.verified, 5n, 4_000_000_000))).includes('long_lived_signature'),
    );
    assert.ok(patterns(await check(permit(cast, cast.verified, 5n, 1))).includes('expired_signature'));
    const elsewhere = seaport(cast, 10n ** 18n).typedData;
    const moved = { ...elsewhere, domain: { ...elsewhere.domain, verifyingContract: cast.verified } };
    assert.ok(patterns(await check({ typedData: moved })).includes('other_contract'));
  });

  it('tells what is signed: the digest of the example of EIP-712', async () => {
    const person = (name: string, wallet: string) => ({ name, wallet });
    const told = await check({
      typedData: {
        types: {
          Person: [
            { name: 'name', type: 'string' },
            { name: 'wallet', type: 'address' },
          ],
          Mail: [
            { name: 'from', type: 'Person' },
            { name: 'to', type: 'Person' },
            { name: 'contents', type: 'string' },
          ],
        },
        primaryType: 'Mail',
        domain: {
          name: 'Ether Mail',
          version: '1',
          chainId: 1,
          verifyingContract: '0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC',
        },
        message: {
          from: person('Cow', '0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826'),
          to: person('Bob', '0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB'),
          contents: 'Hello, Bob!',
        },
      },
    });
    assert.equal(
      told.typedData?.digest,
      '0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2',
    );
  });

  it('refuses what it cannot read, by the name of the field', async () => {
    const fields = (body: Record<string, unknown>) => {
      const parsed = preflight.input.safeParse({ chain: 'base', from: cast.signer, ...body });
      return parsed.error?.issues.map(({ path }) => path.join('.'));
    };
    const good = tx(cast.friend);
    assert.equal(fields(good), undefined);
    assert.deepEqual(fields({}), ['transaction']);
    assert.deepEqual(fields({ ...good, ...permit(cast, cast.friend, 1n) }), ['transaction']);
    assert.deepEqual(fields({ ...good, from: undefined }), ['from']);
    assert.deepEqual(fields({ transaction: 'AQAB' }), ['transaction']);
    assert.deepEqual(fields({ typedData: '{"types":' }), ['typedData']);
    assert.deepEqual(
      fields({ typedData: { ...permit(cast, cast.friend, 1n).typedData, primaryType: 'a b' } }),
      ['typedData.primaryType'],
    );
    const chainId = check({ transaction: { ...good.transaction, chainId: 1 } });
    await assert.rejects(chainId, { status: 400, field: 'transaction.chainId' });
    await assert.rejects(check({ transaction: '0x02ff' }), { status: 400, field: 'transaction' });
    await assert.rejects(check({ transaction: { ...good.transaction, from: cast.friend } }), {
      status: 400,
      field: 'transaction.from',
    });
    const unfit = permit(cast, cast.friend, 1n).typedData;
    const misfit = check({ typedData: { ...unfit, message: { owner: 'me' } } });
    await assert.rejects(misfit, { status: 422, code: 'NO_TYPED_DATA', field: 'typedData' });
  });
});

/** The chain of a node that refuses some methods; without `eth_call` nothing is called in the sender's place. */
function lacking(...methods: string[]): EvmChain {
  const { upstream } = chain;
  const refuse = (name: string) => () => Promise.reject(new BaseError(`the method ${name} does not exist`));
  const client = new Proxy(upstream.client, {
    get(target, key) {
      if (key === 'simulateBlocks' && methods.includes('eth_simulateV1')) return refuse('eth_simulateV1');
      if (key === 'call' && methods.includes('eth_call')) return refuse('eth_call');
      if (key === 'request' && methods.includes('debug_traceCall')) return refuse('debug_traceCall');
      return Reflect.get(target, key) as unknown;
    },
  });
  return { ...upstream, client };
}

/** A token that answers everything with one text, and announces that the caller got one of it. */
function impostor(symbol: string, from: Address): Hex {
  const text = Buffer.from(symbol, 'utf8');
  const word = (hex: string) => hex.padStart(64, '0');
  const push32 = (hex: string) => `7f${hex}`;
  const topic = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
  const store = (hex: string, offset: string) => `${push32(hex)}60${offset}52`;
  return `0x${[
    store(word('1'), '00'),
    `33${push32(word(from.slice(2)))}${push32(topic)}60206000a3`,
    store(word('20'), '00'),
    store(word(text.length.toString(16)), '20'),
    store(text.toString('hex').padEnd(64, '0'), '40'),
    '60606000f3',
  ].join('')}`;
}

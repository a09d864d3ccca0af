import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, BaseError, erc20Abi, parseEther } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { Lists } from '../listed-parties.ts';
import { listsOf, party } from '../shared/screening/lists.fixture.ts';
import { buy, WALLET, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import walletRisk from './wallet-risk.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const LISTED: Address = '0x5a4DB0C515ED0000000000000000000000000001'.toLowerCase() as Address;
const MIXER: Address = '0x5a4db0c5313e0000000000000000000000000001';
const lists = listsOf({
  'ofac-sdn': [
    party('1', 'SANDBOX LISTED 1', {
      addresses: [{ asset: 'XBT', address: LISTED.toUpperCase().replace('0X', '0x') }],
    }),
  ],
  mixers: [party('m1', 'SANDBOX MIXER', { addresses: [{ asset: 'any', address: MIXER }] })],
});

let chain: TestChain;
/** Dealt with the listed address; dealt with the mixing service; with neither. */
let exposed: Address;
let mixed: Address;
let plain: Address;
let firstBlock: bigint;

before(async () => {
  chain = await startTestChain();
  const { client, accounts } = chain;
  const faucet = privateKeyToAccount(accounts.faucet.privateKey);
  const transfer = { abi: erc20Abi, address: USDC, functionName: 'transfer' } as const;
  const made = [];
  for (const to of [LISTED, MIXER, WALLET] as const) {
    const account = privateKeyToAccount(generatePrivateKey());
    await client.setBalance({ address: account.address, value: parseEther('1') });
    const funding = await client.writeContract({
      ...transfer,
      account: faucet,
      args: [account.address, 5_000_000n],
    });
    await client.waitForTransactionReceipt({ hash: funding });
    await client.mine({ blocks: 3 });
    const hash = await client.writeContract({ ...transfer, account, args: [to, 1_000_000n] });
    const receipt = await client.waitForTransactionReceipt({ hash });
    made.push({ address: account.address, blockNumber: receipt.blockNumber });
    await client.mine({ blocks: 20 });
  }
  [exposed, mixed, plain] = made.map(({ address }) => address) as [Address, Address, Address];
  firstBlock = made[2]?.blockNumber ?? 0n;
});
after(() => chain.stop());

interface Told {
  riskScore: number;
  riskTier: string;
  complianceFlags: string[];
  coverage: number;
  parts: { code: string; points: number | null }[];
  analysis: Record<string, unknown>;
  evidence: { code: string; address: string; uid: string; transactionHash: string | null }[];
  lists: { list: string; publishedAt: string; sha256: string }[];
}

async function assess(walletAddress: string, using: Lists = lists, nowMs = Date.now()) {
  const context = { ...walletContext(chain, {}, nowMs), lists: using };
  const made = await buy(walletRisk, { walletAddress }, context);
  assert.equal(walletRisk.output.safeParse(made.fields).success, true);
  return { ...(made.fields as unknown as Told), notes: made.notes.join(' ') };
}

describe('wallet-risk', () => {
  it('gives a listed wallet 100, by the list, with its entry and date, and by the oracle on the chain', async () => {
    const told = await assess(LISTED);
    assert.deepEqual([told.riskScore, told.riskTier], [100, 'CRITICAL']);
    assert.deepEqual(told.complianceFlags, ['SANCTIONS_LIST', 'SANCTIONS_ORACLE']);
    assert.deepEqual(
      told.evidence.map(({ code, uid }) => [code, uid]),
      [['SANCTIONS_LIST', '1']],
    );
    assert.equal(told.analysis.sanctioned, true);
    assert.deepEqual(
      told.lists.map(({ list }) => list),
      ['ofac-sdn', 'mixers'],
    );
    assert(told.lists.every(({ publishedAt, sha256 }) => publishedAt.length > 10 && sha256.length === 64));
  });

  it('finds who a wallet dealt with in the events of tokens, with the transaction', async () => {
    const told = await assess(exposed);
    assert(told.riskScore >= 75);
    assert.deepEqual(told.complianceFlags, ['SANCTIONED_COUNTERPARTY']);
    const [evidence] = told.evidence;
    assert.equal(evidence?.address.toLowerCase(), LISTED);
    const receipt = await chain.client.getTransactionReceipt({
      hash: evidence?.transactionHash as `0x${string}`,
    });
    assert.equal(receipt.from.toLowerCase(), exposed.toLowerCase());

    // Who gave it money, and the listed one, each once.
    assert.equal(told.analysis.counterparties, 2);

    const withMixer = await assess(mixed);
    assert.deepEqual(
      [withMixer.complianceFlags, withMixer.analysis.mixerInteractions],
      [['MIXER_COUNTERPARTY'], 1],
    );
    assert(withMixer.riskScore >= 30 && withMixer.riskScore < 75);
    assert.deepEqual((await assess(MIXER)).complianceFlags, ['MIXER']);
  });

  it('reads age and activity from the chain, to the very block', async () => {
    const { timestamp } = await chain.client.getBlock({ blockNumber: firstBlock });
    const atMs = Number(timestamp) * 1_000;
    const told = await assess(plain, lists, atMs + 40 * 86_400_000);
    assert.deepEqual(told.analysis.firstActivityAt, new Date(atMs).toISOString());
    assert.deepEqual([told.analysis.ageDays, told.analysis.transactionCount], [40, 1]);
    assert.deepEqual(told.complianceFlags, []);
    assert.equal(told.coverage, 1);
    // 40 days: 5; one transaction: 5.
    assert.equal(told.riskScore, 10);
  });

  it('tells a contract and a delegated account from a person’s own', async () => {
    assert.equal((await assess(USDC)).analysis.accountKind, 'contract');
    const delegated = '0x2222222222222222222222222222222222222222';
    await chain.client.setCode({
      address: delegated,
      bytecode: `0xef0100${USDC.slice(2).toLowerCase() as ''}`,
    });
    const { analysis } = await assess(delegated);
    assert.deepEqual([analysis.accountKind, analysis.delegate], ['delegated', USDC.toLowerCase()]);
  });

  it('says null and why for what nobody can say, with less coverage', async () => {
    const { notes, coverage, analysis, parts } = await assess(WALLET, listsOf({ 'ofac-sdn': [] }));
    assert.deepEqual([analysis.ageDays, analysis.mixerInteractions], [null, null]);
    assert.match(notes, /has sent no transaction/);
    assert.deepEqual(
      parts.filter(({ code }) => code.startsWith('MIXER')).map(({ points }) => points),
      [null, null],
    );
    assert.match(notes, /No list of mixing services is configured/);
    assert.match(notes, /Ethereum is not configured/);
    assert(coverage < 1);
  });

  it('has no verdict below 30 % coverage, but tells what condemns a wallet by itself', async () => {
    const oracle = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
    const code = (await chain.client.getCode({ address: oracle })) ?? '0x';
    const { base } = chain.upstreams;
    const silent = async () => {
      throw new BaseError('eth_getLogs is not served');
    };
    const mute = { ...base, client: { ...base.client, getLogs: silent } as typeof base.client };
    const askWith = (walletAddress: string, using: Lists, upstream: typeof base) =>
      buy(
        walletRisk,
        { walletAddress },
        { ...walletContext(chain, { base: upstream }, Date.now()), lists: using },
      );
    const one = listsOf({
      'ofac-sdn': [party('1', 'SANDBOX LISTED 1', { addresses: [{ asset: 'ETH', address: LISTED }] })],
    });
    // Known are the list (100), what it sent (10) and what it is (5), of 420: 27.4 %.
    await chain.client.setCode({ address: oracle, bytecode: '0x' });
    await assert.rejects(askWith(WALLET, one, mute), (error) => {
      assert(error instanceof ServiceFailure);
      assert.deepEqual([error.status, error.code, error.field], [422, 'INSUFFICIENT_DATA', 'chain']);
      assert.match(error.message, /Only 27\.4 %.* SANCTIONS_ORACLE; SANCTIONED_COUNTERPARTY; MIXER;/);
      return true;
    });
    assert.deepEqual((await askWith(LISTED, one, mute)).fields.riskTier, 'CRITICAL');
    // With the oracle 51.2 % are known.
    await chain.client.setCode({ address: oracle, bytecode: code });
    assert.deepEqual((await askWith(WALLET, one, mute)).fields.coverage, 0.512);
  });

  it('is not answered by a list that is too old, nor on a chain that is none', async () => {
    const refusedWith = (status: number) => (error: unknown) =>
      error instanceof ServiceFailure && error.status === status;
    await assert.rejects(assess(WALLET, listsOf({ 'ofac-sdn': 'old' })), refusedWith(503));
    await assert.rejects(assess(WALLET, listsOf({ 'ofac-sdn': [], mixers: 'old' })), refusedWith(503));
    const context = { ...walletContext(chain), lists };
    await assert.rejects(
      buy(walletRisk, { walletAddress: WALLET, chain: 'solana' }, context),
      refusedWith(422),
    );
  });
});

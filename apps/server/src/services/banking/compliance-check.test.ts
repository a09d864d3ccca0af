import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, erc20Abi, parseEther } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../test/chain.fixture.ts';
import { ServiceFailure } from '../../words/failure.ts';
import { listsOf, party } from '../shared/screening/lists.fixture.ts';
import { buy, WALLET, walletContext } from '../shared/wallet/wallet-context.fixture.ts';
import complianceCheck from './compliance-check.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const LISTED: Address = '0x5a4db0c515ed0000000000000000000000000001';
const MIXER: Address = '0x5a4db0c5313e0000000000000000000000000001';
const given = {
  'ofac-sdn': [
    party('1', 'SANDBOX LISTED 1', { addresses: [{ asset: 'ETH', address: LISTED }] }),
    party('2', 'Example Person Muhammad', {
      aliases: [
        { name: 'Пример Персонов', weak: false },
        { name: 'Nickname', weak: true },
      ],
    }),
  ],
  un: [party('TSi.1', 'SANDBOX LISTED 7', { programs: ['Test'] })],
  mixers: [party('m1', 'SANDBOX MIXER', { addresses: [{ asset: 'any', address: MIXER }] })],
};

let chain: TestChain;
let dealer: Address;
before(async () => {
  chain = await startTestChain();
  const { client, accounts } = chain;
  const account = privateKeyToAccount(generatePrivateKey());
  dealer = account.address;
  await client.setBalance({ address: dealer, value: parseEther('1') });
  const transfer = { abi: erc20Abi, address: USDC, functionName: 'transfer' } as const;
  for (const [from, to, amount] of [
    [privateKeyToAccount(accounts.faucet.privateKey), dealer, 2_000_000n],
    [account, LISTED, 1_000_000n],
    [account, MIXER, 500_000n],
  ] as const) {
    const hash = await client.writeContract({ ...transfer, account: from, args: [to, amount] });
    await client.waitForTransactionReceipt({ hash });
  }
});
after(() => chain.stop());

interface Told {
  complianceStatus: string;
  overallScore: number;
  deductions: { code: string; points: number }[];
  checks: { regulation: string; status: string; source: string; asOf: string | null }[];
  violations: { code: string; uid: string; transactionHash: string | null }[];
  nameMatches: { list: string; uid: string; matchedName: string; score: number; strength: string }[];
  lists: { list: string }[];
}

async function check(body: Record<string, unknown>, lists = listsOf(given)) {
  const made = await buy(complianceCheck, body, { ...walletContext(chain, {}, Date.now()), lists });
  assert.equal(complianceCheck.output.safeParse(made.fields).success, true);
  return { ...(made.fields.data as unknown as Told), notes: made.notes.join(' ') };
}

describe('compliance-check', () => {
  it('finds nothing when there is nothing, and names the lists that it searched', async () => {
    const told = await check({ walletAddress: WALLET });
    assert.deepEqual([told.complianceStatus, told.overallScore], ['Compliant', 100]);
    assert.deepEqual(
      told.checks.map(({ status, source }) => [source, status]),
      [
        ['ofac-sdn', 'clear'],
        ['base', 'clear'],
      ],
    );
    assert(told.checks.every(({ asOf }) => asOf !== null));
    assert.match(told.notes, /No name was given/);
  });

  it('says that an oracle was not evaluated when none answers, and not that the wallet is clear', async () => {
    const oracle = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
    const code = (await chain.client.getCode({ address: oracle })) ?? '0x';
    await chain.client.setCode({ address: oracle, bytecode: '0x' });
    const told = await check({ walletAddress: WALLET });
    assert.equal(told.checks.find(({ source }) => source === 'base')?.status, 'not_evaluated');
    await chain.client.setCode({ address: oracle, bytecode: code });
  });

  it('matches an address exactly, and shows entry and list', async () => {
    const told = await check({ walletAddress: LISTED });
    assert.deepEqual([told.complianceStatus, told.overallScore], ['Non-Compliant', 0]);
    assert.deepEqual(
      told.violations.map(({ code, uid }) => [code, uid]),
      [['ADDRESS_LISTED', '1']],
    );
    // An address that differs in one digit is another address.
    const near = await check({ walletAddress: `${LISTED.slice(0, -1)}2` });
    assert.equal(near.complianceStatus, 'Compliant');
  });

  it('matches a name by likeness in every list, with entry, score and list', async () => {
    const exact = await check({ walletAddress: WALLET, name: 'sandbox, listed 7' });
    assert.deepEqual(
      exact.nameMatches.map(({ list, uid, score, strength }) => [list, uid, score, strength]),
      [['un', 'TSi.1', 1, 'strong']],
    );
    assert.deepEqual([exact.complianceStatus, exact.overallScore], ['Needs Review', 20]);
    const spelled = await check({ walletAddress: WALLET, name: 'Primer Personov' });
    assert.equal(spelled.nameMatches[0]?.matchedName, 'Пример Персонов');
    const turned = await check({ walletAddress: WALLET, name: 'Mohammed Person Example' });
    assert.equal(turned.nameMatches[0]?.uid, '2');
    assert.equal((await check({ walletAddress: WALLET, name: 'Sandbox Listed 8' })).nameMatches.length, 0);
  });

  it('never calls a weak alias a strong match', async () => {
    const told = await check({ walletAddress: WALLET, name: 'Nickname' });
    assert.deepEqual(
      told.nameMatches.map(({ score, strength }) => [score, strength]),
      [[1, 'review']],
    );
    assert.deepEqual(
      told.deductions.map(({ code }) => code),
      ['NAME_REVIEW'],
    );
  });

  it('checks counterparties only when it is asked to', async () => {
    assert.equal((await check({ walletAddress: dealer })).complianceStatus, 'Compliant');
    const told = await check({ walletAddress: dealer, checkType: 'Enhanced' });
    assert.deepEqual([told.complianceStatus, told.overallScore], ['Needs Review', 25]);
    assert.deepEqual(
      told.violations.map(({ code }) => code),
      ['COUNTERPARTY_LISTED', 'COUNTERPARTY_MIXER'],
    );
    for (const { transactionHash } of told.violations) {
      const { from } = await chain.client.getTransaction({ hash: transactionHash as `0x${string}` });
      assert.equal(from.toLowerCase(), dealer.toLowerCase());
    }
  });

  it('is not answered by an old list; a list that a name is not looked up in does not matter', async () => {
    const old = listsOf({ ...given, un: 'old' });
    await assert.rejects(
      check({ walletAddress: WALLET, name: 'X' }, old),
      (error) => error instanceof ServiceFailure && error.status === 503,
    );
    assert.equal((await check({ walletAddress: WALLET }, old)).complianceStatus, 'Compliant');
  });

  it('accepts the words that clients use', () => {
    for (const checkType of ['aml', 'KYC', 'sanctions', 'basic']) {
      assert.equal(complianceCheck.input.parse({ walletAddress: WALLET, checkType }).checkType, 'basic');
    }
    assert(!complianceCheck.input.safeParse({ walletAddress: 'ACME Ltd' }).success);
  });
});

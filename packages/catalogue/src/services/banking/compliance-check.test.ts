import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, erc20Abi, parseEther } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { ListedParty } from '../../upstreams/adapters/published-list.ts';
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
  nameMatches: {
    list: string;
    uid: string;
    matchedName: string;
    score: number;
    strength: string;
    clearedBy: string | null;
  }[];
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

  describe('with what is known of the party', () => {
    const born = (...birthDates: (string | null)[]) => ({ birthDates });
    const ask = async (
      more: Record<string, unknown>,
      entry: Partial<ListedParty>,
      name = 'Vladimir Putin',
    ) => {
      const lists = listsOf({ 'ofac-sdn': [party('9', 'PUTIN, Vladimir Vladimirovich', entry)] });
      const told = await check({ walletAddress: WALLET, name, ...more }, lists);
      return [told.complianceStatus, told.deductions[0]?.code ?? null, told.nameMatches[0]?.clearedBy];
    };
    const review = ['Needs Review', 'NAME_REVIEW', null];

    it('reviews a name whose every word is in an entry, in whatever script', async () => {
      for (const name of ['Vladimir Putin', 'Владимир Путин', 'Vladimir Putin 2', 'PUTIN Vladimir']) {
        assert.deepEqual(await ask({}, {}, name), review, name);
      }
    });

    it('clears an entry by a whole date of birth more than two years from every one that it states', async () => {
      const cleared = ['Compliant', null, 'birthDate'];
      assert.deepEqual(await ask({ birthDate: '1960-10-07' }, born('1952-10-07')), cleared);
      assert.deepEqual(await ask({ birthDate: '1960-10-07' }, born('1952-10-07', '1953-01-01')), cleared);
      for (const [birthDate, ...dates] of [
        ['1954-10-06', '1952-10-07'],
        ['1950-10-08', '1952-10-07'],
        ['1960-10-07', '1952-10-07', null],
        ['1960-10-07', null],
        ['1960-10-07', '1952-10-07', '1961-01-01'],
        ['1960-10-07'],
      ] as [string, ...(string | null)[]][]) {
        assert.deepEqual(await ask({ birthDate }, born(...dates)), review, `${birthDate} ${dates}`);
      }
    });

    it('clears an entry by the other kind that its list states, and by nothing else', async () => {
      assert.deepEqual(await ask({ entityType: 'Company' }, {}), ['Compliant', null, 'entityType']);
      assert.deepEqual(await ask({ entityType: 'person' }, { kind: 'vessel' }), [
        'Compliant',
        null,
        'entityType',
      ]);
      assert.deepEqual(await ask({ entityType: 'person' }, { kind: 'entity', kindUnstated: true }), review);
      for (const more of [{ entityType: 'agent' }, { entityType: 'individual' }, { country: 'Iceland' }]) {
        assert.deepEqual(await ask(more, born('1952-10-07')), review, JSON.stringify(more));
      }
    });

    it('takes a strong match no lower than to a review', async () => {
      const whole = 'Vladimir Vladimirovich Putin';
      assert.deepEqual(await ask({}, {}, whole), ['Needs Review', 'NAME_STRONG', null]);
      assert.deepEqual(await ask({ birthDate: '1990-01-01' }, born('1952-10-07'), whole), review);
      assert.deepEqual(await ask({ entityType: 'entity' }, {}, whole), review);
    });

    it('is not compliant when a strong match has the same date of birth, and never by a name alone', async () => {
      const same = { birthDate: '1952-10-07' };
      const whole = 'Vladimir Vladimirovich Putin';
      const found = await ask(same, born('1952-10-07'), whole);
      assert.deepEqual(found, ['Non-Compliant', 'NAME_AND_BIRTH_DATE', null]);
      assert.deepEqual(await ask(same, born('1952-10-07')), review);
    });

    it('shows entries that count before those that are cleared, however many these are', async () => {
      const namesakes = Array.from({ length: 200 }, (_, at) =>
        party(`n${at}`, 'PETROV, Ivan Ivanovich', born('1950-01-01')),
      );
      const lists = listsOf({
        'ofac-sdn': [...namesakes, party('he', 'PETROV, Ivan Sergeevich', born('1990-02-03'))],
      });
      const told = await check(
        { walletAddress: WALLET, name: 'Ivan Petrov', birthDate: '1990-01-01' },
        lists,
      );
      assert(told.nameMatches.some(({ uid }) => uid === 'he'));
    });

    it('refuses a name without letters and a date that is no whole day', () => {
      const errors = (more: object) =>
        complianceCheck.input
          .safeParse({ walletAddress: WALLET, ...more })
          .error?.issues.map(({ path }) => path.join('.'));
      assert.deepEqual(errors({ name: '!!! 12' }), ['name']);
      assert.deepEqual(errors({ birthDate: '1952' }), ['birthDate']);
      assert.deepEqual(errors({ birthDate: '1952-02-30' }), ['birthDate']);
    });
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

  it('does not hide a strong name of an entry behind a weak alias that is closer', async () => {
    const aliases = [{ name: 'Ivan Petrov', weak: true }];
    const lists = listsOf({ 'ofac-sdn': [party('3', 'PETROFF, Ivan', { aliases })] });
    const told = await check({ walletAddress: WALLET, name: 'Ivan Petrov' }, lists);
    assert.deepEqual(
      told.nameMatches.map(({ matchedName, strength }) => [matchedName, strength]),
      [['PETROFF, Ivan', 'strong']],
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

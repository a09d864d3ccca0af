/** A wallet and an identity are paid for once for each agentId of a buyer, whichever way and however often they are asked for. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';

const SOLD = [
  {
    path: 'agent-create-wallet',
    usd: 2,
    exists: 'WALLET_EXISTS',
    inProgress: 'WALLET_IN_PROGRESS',
    rest: {},
  },
  {
    path: 'verified-agent-identity',
    usd: 5,
    exists: 'IDENTITY_EXISTS',
    inProgress: 'IDENTITY_IN_PROGRESS',
    rest: { agentName: 'A' },
  },
] as const;
type Sold = (typeof SOLD)[number];

let database: TestDatabase;
let world: PaymentWorld;
let replicas: readonly TestServer[];
before(async () => {
  [database, world] = await Promise.all([openTestDatabase(), startPaymentWorld()]);
  const services = (await loadServices()).filter(({ path }) => SOLD.some((sold) => sold.path === path));
  const start = () => startTestServer({ pools: database, services, environment: world.environment });
  replicas = await Promise.all([start(), start()]);
});
after(async () => {
  await Promise.all(replicas.map((replica) => replica.close()));
  await Promise.all([database.close(), world.stop()]);
});

const at = (index: number): TestServer => {
  const replica = replicas[index % replicas.length];
  assert(replica !== undefined);
  return replica;
};

interface Told {
  status: number;
  code: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of answers
  body: any;
}

async function toldOf(answer: Response | Promise<Response>): Promise<Told> {
  const response = await answer;
  const body = await jsonOf(response);
  return { status: response.status, code: body.code, body };
}

const byKey = (index: number, key: string, { path, rest }: Sold, body: object) =>
  toldOf(at(index).call(path, key, { ...rest, ...body }));

async function spentOf(key: string, grantedUsd: number): Promise<number> {
  const { balanceUsd, reservedUsd } = await jsonOf(
    fetch(`${at(0).url}/api/keys/me`, { headers: { 'x-api-key': key } }),
  );
  assert.equal(reservedUsd, '0.000000');
  return grantedUsd - Number(balanceUsd);
}

async function byWallet(index: number, payer: PrivateKeyAccount, sold: Sold, body: object): Promise<Told> {
  const url = `${at(index).url}${index % 3 === 0 ? '/api' : ''}/x402/${sold.path}`;
  const challenge = await fetch(url, { method: 'POST', body: '{}' });
  const payment = await signPayment(payer, {
    to: world.recipient,
    valueUnits: BigInt(sold.usd) * 1_000_000n,
  });
  return toldOf(
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'payment-signature': await paymentHeader(challenge, payment),
      },
      body: JSON.stringify({ ...sold.rest, ...body }),
    }),
  );
}

function assertOneSold(answers: readonly Told[], { exists, inProgress }: Sold): Told {
  const [sold, ...more] = answers.filter(({ status }) => status === 200);
  assert(
    sold !== undefined && more.length === 0,
    JSON.stringify(answers.map(({ status, code }) => [status, code])),
  );
  for (const { status, code, body } of answers.filter((each) => each !== sold)) {
    assert([`422 ${exists}`, `503 ${inProgress}`].includes(`${status} ${code}`), JSON.stringify(body));
    assert.equal(body.charged, false, JSON.stringify(body));
    assert(!JSON.stringify(body).includes('fbx_wallet_'));
  }
  return sold;
}

for (const sold of SOLD) {
  describe(sold.path, () => {
    test('of eight that ask for one agentId at once with a key, on two replicas, one is charged', async () => {
      const key = await at(0).key('100');
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) => byKey(index, key, sold, { agentId: 'crowd' })),
      );
      assertOneSold(answers, sold);
      assert.equal(await spentOf(key, 100), sold.usd);
    });

    test('of six payments on a chain for one agentId at once, on two replicas, one moves money', async () => {
      const payer = await world.wallet(50);
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) => byWallet(index, payer, sold, { agentId: 'crowd' })),
      );
      assertOneSold(answers, sold);
      const left = 50_000_000n - BigInt(sold.usd) * 1_000_000n;
      assert.equal(await world.balanceOf(payer.address), left);
      const again = await byWallet(1, payer, sold, { agentId: 'CROWD' });
      assert.deepEqual([again.status, again.code, again.body.charged], [422, sold.exists, false]);
      assert.equal(await world.balanceOf(payer.address), left);
    });

    test('ids that differ by case or by spaces around them are one id', async () => {
      const key = await at(0).key('100');
      const first = await byKey(0, key, sold, { agentId: 'Straße 7' });
      assert.equal(first.status, 200, JSON.stringify(first.body));
      for (const agentId of ['STRASSE 7', 'straße 7', ' Straße 7 ', 'Straße 7']) {
        const { status, code, body } = await byKey(1, key, sold, { agentId });
        assert.deepEqual([status, code, body.charged], [422, sold.exists, false], agentId);
        assert.equal(body.fields[0].field, 'agentId');
      }
      assert.equal(await spentOf(key, 100), sold.usd);
    });

    test('ids that only look like another are refused with what to use, and nothing is charged', async () => {
      const key = await at(0).key('100');
      for (const [agentId, words] of [
        ['ｓame', /use "same"/],
        ['ﬁrst', /use "first"/],
        ['a\u00a0b', /use "a b"/],
        ['e\u0301', /use "é"/],
        ['sa\u200bme', /invisible/],
        ['sa\u200dme', /invisible/],
        ['sa\u00adme', /invisible/],
        ['same\u{e0061}', /invisible/],
        ['sa\u3164me', /invisible/],
        ['sa\u2800me', /invisible/],
        ['sa\ufe0fme', /invisible/],
        ['sa\u202eme', /turn text around/],
        ['sa\u0007me', /control characters/],
      ] as const) {
        const { status, code, body } = await byKey(0, key, sold, { agentId });
        assert.deepEqual(
          [status, code, body.fields?.[0]?.field, body.charged],
          [400, 'INVALID_REQUEST', 'agentId', false],
          JSON.stringify(agentId),
        );
        assert.match(body.fields[0].message, words);
      }
      for (const agentId of ['агент', '代理', 'وكيل', 'agent 🤖']) {
        const kept = await byKey(0, key, sold, { agentId });
        assert.deepEqual([kept.status, kept.body.agentId], [200, agentId], JSON.stringify(kept.body));
      }
      assert.equal(await spentOf(key, 100), 4 * sold.usd);
    });
  });
}

test('whoever asks for a wallet again is told which one it is and how its key is had, and not its secret', async () => {
  const key = await at(0).key('100');
  const [wallet] = SOLD;
  const made = await byKey(0, key, wallet, { agentId: 'again' });
  const { status, body } = await byKey(1, key, wallet, { agentId: 'again' });
  assert.equal(status, 422);
  assert.deepEqual(body.wallet, {
    walletId: made.body.walletId,
    addresses: [{ network: 'base', address: made.body.walletAddress }],
    manage: made.body.manage,
  });
  assert.match(body.message, /X-Wallet-Secret/);
  assert(!JSON.stringify(body).includes(made.body.walletSecret));
});

test('networks that a wallet lacks are bought once, however many ask for them at once', async () => {
  const key = await at(0).key('100');
  const [wallet] = SOLD;
  const made = await byKey(0, key, wallet, { agentId: 'grows' });
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, index) =>
      byKey(index, key, wallet, { agentId: 'grows', networks: ['base', 'solana'] }),
    ),
  );
  const { body } = assertOneSold(answers, wallet);
  assert.deepEqual(
    [body.walletId, body.created, body.walletSecret, body.networks],
    [made.body.walletId, false, null, ['base', 'solana']],
  );
  assert.equal(await spentOf(key, 100), 4);
});

test('rows from before ids were compared without case are found by their own id, and by another case of it', async () => {
  const [wallet] = SOLD;
  const key = await at(0).key('100');
  const first = await byKey(0, key, wallet, { agentId: 'Old' });
  const second = await byKey(0, key, wallet, { agentId: 'other' });
  await database.sql`update managed_wallets set agent_key = null where id = ${first.body.walletId}`;
  await database.sql`
    update managed_wallets set agent_key = null, agent_id = 'old' where id = ${second.body.walletId}`;
  for (const [agentId, walletId] of [
    ['Old', first.body.walletId],
    ['old', second.body.walletId],
    ['OLD', first.body.walletId],
  ]) {
    const { status, body } = await byKey(1, key, wallet, { agentId });
    assert.deepEqual([status, body.wallet?.walletId], [422, walletId], agentId);
  }
  assert.equal(await spentOf(key, 100), 4);
});

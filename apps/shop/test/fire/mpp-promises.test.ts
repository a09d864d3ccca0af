/**
 * Tests what holds of MPP payments beside the fault table: the reference client as it is, headers of any form, services that leave
 * something behind, money that goes back, and a process that is killed.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { readTempoTransaction } from '../../../../packages/core/src/rails/mpp/tempo-payments.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase } from '../database.fixture.ts';
import { eachOf, pathsOf, spoiled, withPath } from '../hostile-values.fixture.ts';
import { altered, METHODS, type MppWorld, opened, receiptOf, startMppWorld } from '../mpp.fixture.ts';
import { fails } from './fault-table.fixture.ts';
import { assertProper, minutesLater, PRICE, setStage, WORDS } from './mpp-stage.fixture.ts';
import { startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';
import { startNodeWire } from './x402-node.fixture.ts';

let world: MppWorld;
before(async () => {
  world = await startMppWorld();
});
after(() => world?.stop());

describe('side by side', { concurrency: 4 }, () => {
  for (const method of METHODS) {
    for (const [code, message] of WORDS) {
      test(`the unmodified client pays once when the node passes it on and answers ${code} (${message}) (${method})`, async () => {
        const stage = await setStage(world, method);
        try {
          for (const sending of ['eth_sendRawTransactionSync', 'eth_sendRawTransaction'])
            stage.node.next(sending, { did: true, says: { error: { code, message } } }, 2);
          stage.node.next('eth_getTransactionReceipt', { did: false, says: { result: null } }, 3);
          const client = world.client(await world.wallet(), method);
          const { status } = await client.fetch(`${stage.here.url}/mpp/nickel`, { method: 'POST' });
          await stage.rest();
          assert([200, 503].includes(status), String(status));
          assert.deepEqual([await stage.moved(), stage.script.runs], [PRICE, 1]);
          const { captured, capturedMicros } = await stage.calls();
          assert.deepEqual([captured, capturedMicros], [1, PRICE]);
          await stage.assertBooksBalance();
        } finally {
          await stage.close();
        }
      });
    }
  }

  test('who paid is who signed, whatever the credential claims', async () => {
    const stage = await setStage(world, 'tempo');
    try {
      const [payer, other] = [await world.wallet(), await world.wallet()];
      const claimed = altered(await stage.credential(payer), (credential) => {
        credential.source = `did:pkh:eip155:4217:${other.address}`;
      });
      const told = await stage.present(claimed);
      assert.equal(told.text, '200', told.body);
      const rows = await stage.database.sql<{ payer: string }[]>`select payer from settlements`;
      assert.deepEqual(
        rows.map((row) => row.payer),
        [payer.address.toLowerCase()],
      );
    } finally {
      await stage.close();
    }
  });

  test('a signature that is written in another way pays once, and both ways get the one answer', async () => {
    const stage = await setStage(world, 'tempo');
    try {
      const good = await stage.credential(await world.wallet());
      const otherwise = (add: number) =>
        altered(good, ({ payload }) => {
          const last = Number.parseInt(payload.signature.slice(-2), 16) - 27;
          payload.signature = `${payload.signature.slice(0, -2)}${(last + add).toString(16).padStart(2, '0')}`;
        });
      const first = await stage.present(otherwise(0));
      assert.equal(first.text, '200', first.body);
      for (const again of [good, otherwise(35)]) {
        const told = await stage.present(again);
        assert.deepEqual([told.text, told.body], ['200 again', first.body]);
      }
      assert.deepEqual([await stage.moved(), (await stage.calls()).captured], [PRICE, 1]);
    } finally {
      await stage.close();
    }
  });

  for (const method of METHODS) {
    test(`whatever is written into the header moves nothing, and the answer is of the standard form (${method})`, async () => {
      const stage = await setStage(world, method);
      try {
        const good = await stage.credential(await world.wallet());
        const fields = Object.keys(opened(good).payload);
        const json = fc.json().map((text) => `Payment ${Buffer.from(text).toString('base64url')}`);
        const noise = fc
          .string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) })
          .map((text) => `Payment ${text}`);
        const payload = fc.jsonValue().map((value) =>
          altered(good, (credential) => {
            credential.payload = value;
          }),
        );
        const hex = fc
          .uint8Array({ maxLength: 300 })
          .map((bytes) => `0x76${Buffer.from(bytes).toString('hex')}`);
        const field = fc
          .tuple(fc.constantFrom(...fields), fc.oneof(fc.jsonValue(), hex))
          .map(([name, value]) =>
            altered(good, (credential) => {
              credential.payload[name] = value;
            }),
          );
        /** One byte of what was signed is another. */
        const flipped = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })).map(([at, by]) =>
          altered(good, ({ payload: signed }) => {
            const bytes = Buffer.from(signed.signature.slice(2), 'hex');
            const index = at % bytes.length;
            bytes[index] = (bytes[index] ?? 0) ^ by;
            signed.signature = `0x${bytes.toString('hex')}`;
          }),
        );
        const examples = fields.flatMap((name): [string][] => [
          [
            altered(good, (credential) => {
              credential.payload[name] = { toString: '' };
            }),
          ],
          [
            altered(good, (credential) => {
              credential.payload[name] = [credential.payload[name]];
            }),
          ],
        ]);
        await fc.assert(
          fc.asyncProperty(fc.oneof(json, noise, payload, field, flipped), async (authorization) => {
            fc.pre(!(await isSamePayment(authorization, good)));
            const told = await stage.present(authorization);
            // What every look takes for good and the node will not send is dead only when the chain is past its end.
            const isRefused = [400, 402].includes(told.status) || told.text === '503 SETTLEMENT_UNKNOWN';
            assert(isRefused, `${told.text} to ${authorization}: ${told.body}`);
            assertProper(told);
          }),
          { numRuns: 250 + examples.length, examples },
        );
        assert.deepEqual([await stage.moved(), (await stage.calls()).captured], [0n, 0]);
      } finally {
        await stage.close();
      }
    });
  }
});

for (const method of METHODS) {
  test(`no value in any place of a credential is more than refused (${method})`, async () => {
    const stage = await setStage(world, method);
    try {
      const good = await stage.credential(await world.wallet());
      // As it travels: the library would mend what it writes.
      const honest: unknown = JSON.parse(Buffer.from(good.replace(/^Payment /, ''), 'base64url').toString());
      // Who the payer claims to be, and the words of the challenge, are not looked at: they are spoiled where nothing is signed.
      const free = [['source'], ['challenge', 'description']];
      const lookedAt = pathsOf(honest).filter(
        ([name, field]) => name !== 'source' && field !== 'description',
      );
      const forged = withPath(honest, ['payload', 'signature'], '0x76');
      await eachOf([...spoiled(honest, lookedAt), ...spoiled(forged, free)], async ({ path, put, value }) => {
        const told = await stage.present(
          `Payment ${Buffer.from(JSON.stringify(value)).toString('base64url')}`,
        );
        const what = `${told.text} to ${path.join('.')}: ${JSON.stringify(put)}`;
        assert.equal(told.status, 402, what);
        if (path[0] === 'payload' && path.length === 2)
          assert.match(JSON.parse(told.body).type, /\/invalid-payload$/, what);
        assertProper(told);
      });
      assert.deepEqual([await stage.moved(), (await stage.calls()).captured], [0n, 0]);
    } finally {
      await stage.close();
    }
  });
}

/** Whether a credential holds the same signed transaction, which can be written in more than one way. */
async function isSamePayment(one: string, other: string): Promise<boolean> {
  const hashes = [one, other].map(
    async (each) => (await readTempoTransaction(opened(each).payload.signature)).hash,
  );
  return Promise.all(hashes).then(
    ([first, second]) => first === second,
    () => false,
  );
}

test('a service that leaves something behind is sold only where money can be sent back', async () => {
  const stage = await setStage(world, 'evm');
  try {
    const offered = async (path: string) => {
      const { status, headers } = await fetch(`${stage.here.url}/mpp/${path}`, { method: 'POST' });
      return [
        status,
        [...(headers.get('www-authenticate') ?? '').matchAll(/method="(\w+)"/g)].map(([, name]) => name),
      ];
    };
    assert.deepEqual(await offered('nickel'), [402, ['tempo', 'evm']]);
    assert.deepEqual(await offered('deed'), [402, ['tempo', 'evm']]);
    const payer = await world.wallet();
    const unpaid = await fetch(`${stage.here.url}/mpp/deed`, { method: 'POST' });
    const authorization = await stage.answer(payer, unpaid);
    stage.script.during = (run) => (run === 1 ? fails() : Promise.resolve());
    const told = [
      await stage.present(authorization, { path: 'deed' }),
      await stage.present(authorization, { path: 'deed' }),
      await stage.present(authorization, { path: 'deed' }),
    ];
    assert.deepEqual(
      told.map(({ text }) => text),
      ['503 SOURCE_DOWN', '200', '200 again'],
    );
    for (const each of told) assertProper(each);
    assert.deepEqual([stage.script.runs, await stage.moved()], [2, PRICE]);
    await stage.restart({ MPP_TEMPO_REFUND_KEY: '' });
    assert.deepEqual(await offered('deed'), [402, ['evm']]);
    await stage.restart({ X402_REFUND_KEYS: '', MPP_TEMPO_REFUND_KEY: '' });
    assert.deepEqual(await offered('deed'), [402, []]);
    await stage.assertBooksBalance();
  } finally {
    await stage.close();
  }
});

for (const method of METHODS) {
  test(`what was paid for and cannot be delivered is sent back (${method})`, async () => {
    const stage = await setStage(world, method);
    try {
      const payer = await world.wallet();
      const unpaid = await fetch(`${stage.here.url}/mpp/deed`, { method: 'POST' });
      const authorization = await stage.answer(payer, unpaid);
      stage.script.during = fails;
      const told = [await stage.present(authorization, { path: 'deed' })];
      assert.equal(await stage.moved(), PRICE);
      // On Tempo the payer has paid a fee, too.
      const held = await world.holds(payer.address, method);
      await minutesLater(60, () => stage.rest());
      await minutesLater(60, () => stage.rest());
      assert.equal((await world.holds(payer.address, method)) - held, PRICE);
      told.push(await stage.present(authorization, { path: 'deed' }));
      assert.deepEqual(
        told.map(({ text }) => text),
        ['503 SOURCE_DOWN', '410 REFUNDED again'],
      );
      for (const each of told) assertProper(each);
      await stage.assertBooksBalance();
    } finally {
      await stage.close();
    }
  });
}

describe('a process that is killed', { concurrency: METHODS.length }, () => {
  for (const method of METHODS) {
    test(`kill -9 between settlement and capture: the finisher completes it (${method})`, async () => {
      const [database, wire] = await Promise.all([
        openTestDatabase(),
        startNodeWire(method === 'tempo' ? world.tempo.url : world.base.chain.url),
      ]);
      const environment = {
        ...world.environment,
        DATABASE_URL: database.url,
        RECONCILE_INTERVAL_MS: '100',
        FACILITATOR_URL: '',
        X402_RELAYER_KEYS: world.base.chain.accounts.relayer.privateKey,
        ...(method === 'tempo' ? { MPP_TEMPO_RPC_URL: wire.url } : { UPSTREAM_BASE_BASE_URL: wire.url }),
      };
      const sending = method === 'tempo' ? 'eth_sendRawTransaction' : 'eth_sendRawTransactionSync';
      let server = await startServerProcess(environment);
      try {
        const payer = await world.wallet();
        const received = await world.received(method);
        const unpaid = await fetch(`${server.url}/mpp/first-call`, { method: 'POST' });
        const authorization = await world.credential(payer, method, unpaid);
        const present = () =>
          fetch(`${server.url}/mpp/first-call`, { method: 'POST', headers: { authorization }, body: '{}' });
        wire.next(sending, 'reply held');
        const asked = present().then(
          () => 'answered',
          () => 'died',
        );
        await until('the money to move', async () => (await world.received(method)) > received);
        await server.end('SIGKILL');
        assert.equal(await asked, 'died');
        await database.sql`update settlements set next_at = now(), lease_until = now() where final_at is null`;

        server = await startServerProcess(environment);
        await until('the finisher to capture it', async () => {
          const [row] = await database.sql<{ state: number }[]>`select state from calls`;
          return row?.state === 1;
        });
        const answers = [await present(), await present()];
        const texts = await Promise.all(answers.map((each) => each.text()));
        assert.deepEqual(
          answers.map(({ status, headers }) => [status, headers.get('idempotent-replayed')]),
          [
            [200, 'true'],
            [200, 'true'],
          ],
          texts.join('\n'),
        );
        assert.equal(texts[0], texts[1]);
        assert.equal(receiptOf(answers[0] ?? assert.fail())?.method, method);
        assert.equal((await world.received(method)) - received, PRICE);
        const { checks } = await proveBooks(database.patient);
        assert.deepEqual(
          checks.filter(({ ok }) => !ok),
          [],
        );
      } finally {
        await server.end('SIGKILL');
        await wire.close();
        await database.close();
      }
    });
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Challenge } from 'mppx';
import { evm, Mppx, Store, tempo } from 'mppx/server';
import { createClient, http } from 'viem';
import { templateOf } from './challenge-template.ts';

const SECRET = 'a secret of at least 32 characters, for tests';
const RECIPIENT = '0x000000000000000000000000000000000000dEaD';
const NOW_MS = Date.parse('2026-03-01T12:00:00.000Z');
const library = Mppx.create({
  realm: 'shop.test',
  secretKey: SECRET,
  methods: [
    tempo.charge({
      currency: '0x20C000000000000000000000b9537d11c60E8b50',
      recipient: RECIPIENT,
      decimals: 6,
      getClient: () => createClient({ transport: http('http://127.0.0.1:9') }),
      supportedModes: ['pull'],
      store: Store.memory(),
    }),
    evm.charge({
      currency: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      chainId: 8453,
      decimals: 6,
      authorization: { name: 'USD Coin', version: '2' },
      recipient: RECIPIENT,
      settle: () => Promise.reject(new Error('nothing is settled here')),
    }),
  ],
});

/** The `WWW-Authenticate` header of a 402 that the library made. */
async function made(description: string): Promise<string> {
  const options = { amount: '0.25', description, scope: 'POST /mpp/ping', meta: { n: 'one' } };
  const answer = await library.compose(
    ['tempo/charge', options],
    ['evm/charge', options],
  )(new Request('https://shop.test/mpp/ping', { method: 'POST' }));
  assert.equal(answer.status, 402);
  return (answer as { challenge: Response }).challenge.headers.get('www-authenticate') ?? '';
}

/** The part that is the same in every challenge for the same terms. */
const termsIn = (header: string) =>
  Challenge.deserializeList(header).map(({ id: _, expires: __, opaque: ___, meta: ____, ...terms }) => terms);

for (const description of ['Ping', 'Says "no" \\ and 5 € – ID'])
  test(`fresh challenges equal those of the library, and are bound by our secret: ${description}`, async () => {
    const header = await made(description);
    assert.deepEqual(termsIn(header), termsIn(await made(description)), 'its own differ in nothing else');
    const template = templateOf({ Challenge }, header, SECRET);
    const opaque = { n: 'two', b: 'digest', _mppx_scope: 'POST /mpp/ping' };
    const fresh = template.fresh(opaque, NOW_MS);
    assert.deepEqual(termsIn(fresh.header), termsIn(header));
    const challenges = Challenge.deserializeList(fresh.header);
    assert.deepEqual(
      challenges.map(({ id }) => id),
      fresh.ids,
    );
    assert.deepEqual(
      challenges.map(({ method }) => method),
      ['tempo', 'evm'],
    );
    for (const challenge of challenges) {
      assert.ok(Challenge.verify(challenge, { secretKey: SECRET }), 'the library recognizes it');
      assert.equal(Challenge.verify(challenge, { secretKey: `${SECRET}!` }), false);
      assert.equal(challenge.expires, '2026-03-01T12:05:00.000Z');
      assert.deepEqual(JSON.parse(Buffer.from(challenge.opaque ?? '', 'base64url').toString()), opaque);
      // The same fields, written by the library.
      const again = Challenge.from({
        ...challenge,
        opaque: undefined,
        meta: opaque,
        secretKey: SECRET,
      } as never);
      assert.equal(again.id, challenge.id);
    }
    assert.notDeepEqual(template.fresh({ ...opaque, n: 'three' }, NOW_MS).ids, fresh.ids);
  });

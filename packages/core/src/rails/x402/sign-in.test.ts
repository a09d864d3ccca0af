import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { generateKeyPairSigner, signBytes } from '@solana/kit';
import { createSIWxPayload, encodeSIWxHeader, type SIWxPayload } from '@x402/extensions/sign-in-with-x';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { createSiweMessage } from 'viem/siwe';
import { openTestDatabase, type TestDatabase } from '../../../../../apps/shop/test/database.fixture.ts';
import { spoiled } from '../../../../../apps/shop/test/hostile-values.fixture.ts';
import { PaymentRefused } from '../../paid-call/rail.ts';
import { type Secrets, secretsOf } from '../../secrets/secrets.ts';
import { createSignIn, type SignInChallenge } from './sign-in.ts';

const BASE = 'eip155:8453';
const SOLANA = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const RESOURCE = 'https://shop.test/x402/first-call';

let database: TestDatabase;
let nowMs = Date.now();
before(async () => {
  database = await openTestDatabase();
});
after(() => database?.close());

function signInOf(changes: { baseUrl?: string; secrets?: Secrets } = {}): SignInChallenge {
  return createSignIn({
    baseUrl: 'https://shop.test',
    secrets: secretsOf(['a secret']),
    sql: database.sql,
    chains: [BASE, SOLANA],
    nowMs: () => nowMs,
    ...changes,
  });
}

async function solanaWallet() {
  const { address, keyPair } = await generateKeyPairSigner();
  return {
    publicKey: String(address),
    signMessage: async (message: Uint8Array) => new Uint8Array(await signBytes(keyPair.privateKey, message)),
  };
}

/** What the published client sends, having read the challenge of a 402. */
async function signedByClient(
  chainId: typeof BASE | typeof SOLANA,
  issuer = signInOf(),
): Promise<{ header: string; payload: SIWxPayload }> {
  const { info } = issuer.fixed(RESOURCE);
  const challenge = {
    ...(info as { domain: string; uri: string; version: string; statement: string; resources: string[] }),
    ...issuer.fresh(),
  };
  const payload =
    chainId === BASE
      ? await createSIWxPayload(
          { ...challenge, chainId, type: 'eip191' },
          privateKeyToAccount(generatePrivateKey()),
          RESOURCE,
        )
      : await createSIWxPayload({ ...challenge, chainId, type: 'ed25519' }, await solanaWallet(), RESOURCE);
  return { header: encodeSIWxHeader(payload), payload };
}

const headerOf = (payload: unknown) => Buffer.from(JSON.stringify(payload)).toString('base64');
const wrong = (field: string) => (error: unknown) => {
  assert.ok(error instanceof PaymentRefused);
  assert.deepEqual([error.code, error.details.field], ['SIGN_IN_INVALID', field]);
  return true;
};

for (const chainId of [BASE, SOLANA] as const) {
  test(`the published client signs in on ${chainId}, once with each message, on any replica`, async () => {
    const { header, payload } = await signedByClient(chainId);
    const payer = await signInOf().check(header, RESOURCE);
    assert.equal(payer, chainId === BASE ? payload.address.toLowerCase() : payload.address);
    for (const replica of [signInOf(), signInOf()])
      await assert.rejects(replica.check(header, RESOURCE), wrong('nonce'));
    // Nor is somebody else of the same second held back by it.
    await signInOf().check((await signedByClient(chainId)).header, RESOURCE);
  });

  test(`on ${chainId} nothing of the message can be changed after it was signed`, async () => {
    const { payload } = await signedByClient(chainId);
    const somebody = await signedByClient(chainId);
    const changes: [string, Partial<SIWxPayload>][] = [
      ['signature', { address: somebody.payload.address }],
      ['signature', { signature: somebody.payload.signature }],
      ['signature', { signature: 'junk' }],
      ['signature', { statement: 'something else' }],
      ['signature', { uri: 'https://shop.test' }],
      ['signature', { resources: [RESOURCE] }],
      ['signature', { requestId: 'other' }],
      ['signature', { expirationTime: new Date(nowMs + 3_600_000).toISOString() }],
      ['signature', { chainId: chainId === BASE ? SOLANA : BASE }],
      ['chainId', { chainId: 'eip155:1' }],
      ['domain', { domain: 'evil.test' }],
      ['uri', { uri: 'https://evil.test/x402/first-call' }],
      ['nonce', { nonce: '0123456789abcdef' }],
    ];
    for (const [field, change] of changes)
      await assert.rejects(signInOf().check(headerOf({ ...payload, ...change }), RESOURCE), wrong(field));
    await signInOf().check(headerOf(payload), RESOURCE);
  });
}

test('a message is good for as long as its signer said, where that is shorter than five minutes', async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  const signed = (times: { expirationTime?: string; notBefore?: string }) => {
    const issuer = signInOf();
    const challenge = { ...issuer.fixed(RESOURCE).info, ...issuer.fresh(), ...times };
    return createSIWxPayload(
      { ...challenge, chainId: BASE, type: 'eip191' } as Parameters<typeof createSIWxPayload>[0],
      account,
      RESOURCE,
    );
  };
  const at = (inMs: number) => new Date(nowMs + inMs).toISOString();
  const over = await signed({ expirationTime: at(-1_000) });
  await assert.rejects(signInOf().check(headerOf(over), RESOURCE), wrong('expirationTime'));
  const early = await signed({ notBefore: at(60_000) });
  await assert.rejects(signInOf().check(headerOf(early), RESOURCE), wrong('notBefore'));
  const good = await signed({ expirationTime: at(1_000), notBefore: at(-1_000) });
  assert.equal(await signInOf().check(headerOf(good), RESOURCE), account.address.toLowerCase());
});

test('while a secret is replaced, what either replica has asked for is recognized by both', async () => {
  const after = signInOf({ secrets: secretsOf(['a newer secret', 'a secret']) });
  await after.check((await signedByClient(BASE, signInOf())).header, RESOURCE);
  const aware = signInOf({ secrets: secretsOf(['a secret', 'a newer secret']) });
  const { header } = await signedByClient(BASE, after);
  await aware.check(header, RESOURCE);
  await assert.rejects(after.check(header, RESOURCE), wrong('nonce'));
});

test('a message that was signed for another shop, another resource or with another secret is refused', async () => {
  const elsewhere = signInOf({ baseUrl: 'https://evil.test' });
  const { info } = elsewhere.fixed('https://evil.test/x402/first-call');
  const account = privateKeyToAccount(generatePrivateKey());
  const payload = await createSIWxPayload(
    { ...info, ...elsewhere.fresh(), chainId: BASE, type: 'eip191' } as Parameters<
      typeof createSIWxPayload
    >[0],
    account,
    'https://evil.test/x402/first-call',
  );
  await assert.rejects(signInOf().check(encodeSIWxHeader(payload), RESOURCE), wrong('domain'));
  const { header } = await signedByClient(BASE);
  await assert.rejects(signInOf().check(header, 'https://shop.test/x402/ping'), wrong('uri'));
  const guessed = await signedByClient(BASE, signInOf({ secrets: secretsOf(['another']) }));
  await assert.rejects(signInOf().check(guessed.header, RESOURCE), wrong('nonce'));
});

test('a message is good for five minutes, and neither from the future nor with a date of its own', async () => {
  const old = await signedByClient(BASE);
  nowMs += 300_000;
  const { header } = await signedByClient(BASE);
  nowMs += 299_000;
  await signInOf().check(header, RESOURCE);
  await assert.rejects(signInOf().check(old.header, RESOURCE), wrong('issuedAt'));
  const { payload } = await signedByClient(BASE);
  nowMs -= 3_000;
  await assert.rejects(signInOf().check(headerOf(payload), RESOURCE), wrong('issuedAt'));
  nowMs += 3_000;
  const later = new Date(Date.parse(payload.issuedAt) + 1_000).toISOString();
  await assert.rejects(signInOf().check(headerOf({ ...payload, issuedAt: later }), RESOURCE), wrong('nonce'));
  await assert.rejects(
    signInOf().check(headerOf({ ...payload, issuedAt: 'now' }), RESOURCE),
    wrong('issuedAt'),
  );
});

test('used nonces are kept for as long as they would be good', async () => {
  const { header } = await signedByClient(BASE);
  await signInOf().check(header, RESOURCE);
  nowMs += 299_000;
  await signInOf().dropExpired();
  await assert.rejects(signInOf().check(header, RESOURCE), wrong('nonce'));
  nowMs += 600_000;
  await signInOf().dropExpired();
  const [row] = await database.sql<{ count: bigint }[]>`select count(*) as count from sign_in_nonces`;
  assert.equal(row?.count, 0n);
  await assert.rejects(signInOf().check(header, RESOURCE), wrong('issuedAt'));
});

test('a message that viem writes, with everything that EIP-4361 has, is the one that is checked', async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  const { nonce, issuedAt, expirationTime } = signInOf().fresh();
  const fields = {
    domain: 'shop.test',
    address: account.address,
    statement: 'All of it.',
    uri: RESOURCE,
    version: '1' as const,
    nonce,
    requestId: 'r-1',
    resources: [RESOURCE, 'https://elsewhere.test/'],
  };
  const message = createSiweMessage({
    ...fields,
    chainId: 8453,
    issuedAt: new Date(issuedAt),
    expirationTime: new Date(expirationTime),
    notBefore: new Date(issuedAt),
  });
  const payload = {
    ...fields,
    chainId: BASE,
    type: 'eip191',
    issuedAt,
    expirationTime,
    notBefore: issuedAt,
    signature: await account.signMessage({ message }),
  };
  assert.equal(await signInOf().check(headerOf(payload), RESOURCE), account.address.toLowerCase());
});

test('junk is refused', async () => {
  const { payload } = await signedByClient(BASE);
  const { signature: _, ...unsigned } = payload;
  for (const [field, header] of [
    ['SIGN-IN-WITH-X', 'junk'],
    ['SIGN-IN-WITH-X', 'A'.repeat(8_001)],
    ['', headerOf(null)],
    ['', headerOf([payload])],
    ['signature', headerOf(unsigned)],
    ['version', headerOf({ ...payload, version: '2' })],
    ['resources', headerOf({ ...payload, resources: Array(11).fill(RESOURCE) })],
  ] as const)
    await assert.rejects(signInOf().check(header, RESOURCE), wrong(field));
});

test('no value in any field of a message is more than refused', async () => {
  const { payload } = await signedByClient(BASE);
  const whole = {
    ...payload,
    statement: 'a',
    requestId: 'a',
    resources: [RESOURCE],
    notBefore: payload.issuedAt,
  };
  for (const { path, put, value } of spoiled(whole))
    await assert.rejects(
      signInOf().check(headerOf(value), RESOURCE),
      (error) => error instanceof PaymentRefused && error.code === 'SIGN_IN_INVALID',
      `${path.join('.')}: ${JSON.stringify(put)}`,
    );
});

test('an empty time is none in the message that Solana wallets sign', async () => {
  const { payload } = await signedByClient(SOLANA);
  await signInOf().check(headerOf({ ...payload, notBefore: '' }), RESOURCE);
});

test('what it offers is what CAIP-122 asks for', () => {
  const challenge = signInOf();
  const { supportedChains, info } = challenge.fixed(RESOURCE);
  assert.deepEqual(supportedChains, [
    { chainId: BASE, type: 'eip191' },
    { chainId: SOLANA, type: 'ed25519' },
  ]);
  assert.deepEqual([info.domain, info.uri, info.version], ['shop.test', RESOURCE, '1']);
  const { nonce, issuedAt, expirationTime } = challenge.fresh();
  assert.match(nonce, /^[a-zA-Z0-9]{8,}$/);
  assert.ok(Date.parse(issuedAt) <= nowMs && Date.parse(issuedAt) > nowMs - 1_000);
  assert.equal(Date.parse(expirationTime) - Date.parse(issuedAt), 300_000);
});

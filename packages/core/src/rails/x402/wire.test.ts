import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Headers, PaymentRefused } from '../../paid-call/rail.ts';
import { hasPayment, readPresented } from './wire.ts';

const hex = (bytes: number, digit = 'a') => `0x${digit.repeat(bytes * 2)}`;
const authorization = {
  from: hex(20),
  to: hex(20, 'B'),
  value: '50000',
  validAfter: '0',
  validBefore: '1900000000',
  nonce: hex(32, 'c'),
};
const payload = { signature: hex(65, 'D'), authorization };
const accepted = { scheme: 'exact', network: 'eip155:8453', amount: '50000' };
const v2 = { x402Version: 2, accepted, payload };
const v1 = { x402Version: 1, scheme: 'exact', network: 'base', payload };
const HASH = hex(32, 'E');
const SOLANA_SIGNATURE = '5'.repeat(88);

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
const read = (header: string) => readPresented({ 'payment-signature': header });

function codeOf(header: string | Headers): string {
  try {
    readPresented(typeof header === 'string' ? { 'payment-signature': header } : header);
  } catch (error) {
    assert.ok(error instanceof PaymentRefused, `not a refusal: ${error}`);
    assert.ok(error.message.length > 10 && error.hint.length > 10);
    return error.code;
  }
  return 'read';
}

test('both versions are read from either header and in every encoding, to the same payment', () => {
  for (const [version, sent] of [
    [1, v1],
    [2, v2],
  ] as const) {
    // Values whose padding differs, and characters in which the two alphabets differ.
    for (const filler of ['', 'a', 'ab', '???>>>~~~ÿ']) {
      const json = JSON.stringify({ ...sent, resource: filler });
      const bytes = Buffer.from(json);
      const encoded = [
        bytes.toString('base64'),
        bytes.toString('base64').replace(/=+$/, ''),
        bytes.toString('base64url'),
        ` ${bytes.toString('base64')} `,
        json,
      ];
      for (const header of encoded) {
        for (const name of ['payment-signature', 'x-payment']) {
          const presented = readPresented({ [name]: header });
          assert.ok(presented.scheme === 'exact-evm');
          assert.deepEqual(
            [presented.version, presented.network.id, presented.paymentId],
            [version, 'eip155:8453', null],
          );
          assert.deepEqual(presented.authorization, {
            from: hex(20),
            to: hex(20, 'b'),
            value: 50_000n,
            validAfter: 0n,
            validBefore: 1_900_000_000n,
            nonce: hex(32, 'c'),
          });
          assert.equal(presented.signature, hex(65, 'd'));
          assert.deepEqual(presented.accepted, version === 2 ? accepted : null);
        }
      }
    }
  }
  assert.equal(codeOf({ 'payment-signature': base64(v2), 'x-payment': base64(v2) }), 'read');
});

test('numbers may be JSON numbers, and a payment identifier is read', () => {
  const numbers = { ...authorization, value: 50_000, validAfter: 0, validBefore: 1_900_000_000 };
  const presented = read(
    base64({
      ...v2,
      payload: { ...payload, authorization: numbers },
      extensions: { 'payment-identifier': { info: { required: false, id: 'a-name-of-16-chars' } } },
    }),
  );
  assert.ok(presented.scheme === 'exact-evm');
  assert.equal(presented.authorization.value, 50_000n);
  assert.equal(presented.paymentId, 'a-name-of-16-chars');
});

test('a transfer that was made already is read from its hash alone or from JSON', () => {
  const any = { scheme: 'transfer', network: null, transaction: HASH.toLowerCase() };
  assert.deepEqual(read(HASH), any);
  for (const field of ['txHash', 'transactionHash', 'transaction'])
    assert.deepEqual(read(base64({ [field]: HASH })), any);
  const onBase = read(base64({ txHash: HASH, network: 'base' }));
  assert.equal(onBase.network?.id, 'eip155:8453');
  for (const header of [SOLANA_SIGNATURE, base64({ txHash: SOLANA_SIGNATURE })]) {
    const transfer = read(header);
    assert.deepEqual([transfer.scheme, transfer.network?.kind], ['transfer', 'solana']);
    assert.equal('transaction' in transfer && transfer.transaction, SOLANA_SIGNATURE);
  }
});

test('a Solana payment carries its transaction', () => {
  const transaction = Buffer.alloc(300, 7).toString('base64');
  for (const sent of [
    { x402Version: 1, scheme: 'exact', network: 'solana', payload: { transaction } },
    {
      x402Version: 2,
      accepted: { scheme: 'exact', network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
      payload: { transaction },
    },
  ]) {
    const presented = read(base64(sent));
    assert.ok(presented.scheme === 'exact-svm');
    assert.equal(presented.transaction, transaction);
  }
});

const changed = (change: Record<string, unknown>) =>
  base64({ ...v2, payload: { ...payload, authorization: { ...authorization, ...change } } });
const identified = (id: unknown) => base64({ ...v2, extensions: { 'payment-identifier': { info: { id } } } });
const REFUSED: Record<string, Record<string, string | Headers>> = {
  PAYMENT_DECODE_FAILED: {
    nothing: '',
    'a word': 'hello',
    'base64 of no JSON': Buffer.from('hello').toString('base64'),
    'half of it': base64(v2).slice(0, 100),
    'a list': base64([v2]),
    'a string': base64('x'),
    null: base64(null),
    'too many characters': 'A'.repeat(16_001),
    'twice the same header': { 'payment-signature': [base64(v2), base64(v2)] },
    'two that differ': { 'payment-signature': base64(v2), 'x-payment': base64(v1) },
    'version 2 without accepted': base64({ ...v2, accepted: undefined }),
    'no payload': base64({ ...v2, payload: undefined }),
    'no signature': base64({ ...v2, payload: { authorization } }),
    'an empty signature': base64({ ...v2, payload: { ...payload, signature: '0x' } }),
    'half a byte': base64({ ...v2, payload: { ...payload, signature: '0xabc' } }),
    'a huge signature': base64({ ...v2, payload: { ...payload, signature: hex(4_097) } }),
    'a short address': changed({ from: hex(19) }),
    'a long nonce': changed({ nonce: hex(33) }),
    'a negative value': changed({ value: '-1' }),
    'a fraction': changed({ value: 0.5 }),
    'a value in hex': changed({ value: '0xc350' }),
    'an unsafe integer': changed({ value: 2 ** 60 }),
    'a value without end': changed({ value: '1'.repeat(79) }),
    'no validBefore': changed({ validBefore: undefined }),
    'a Solana payment without a transaction': base64({ ...v1, network: 'solana' }),
    'a Solana transaction that is too long': base64({
      ...v1,
      network: 'solana',
      payload: { transaction: 'A'.repeat(2_004) },
    }),
  },
  PAYMENT_VERSION_UNSUPPORTED: {
    'no version': base64({ accepted, payload }),
    'version 3': base64({ ...v2, x402Version: 3 }),
    'a version in quotes': base64({ ...v2, x402Version: '2' }),
  },
  PAYMENT_SCHEME_UNSUPPORTED: {
    upto: base64({ ...v1, scheme: 'upto' }),
    'none in version 2': base64({ ...v2, accepted: { network: 'eip155:8453' } }),
  },
  PAYMENT_NETWORK_UNSUPPORTED: {
    'a test network': base64({ ...v1, network: 'base-sepolia' }),
    'no network': base64({ ...v1, network: undefined }),
    'a number': base64({ ...v1, network: 8453 }),
    'a transfer elsewhere': base64({ txHash: HASH, network: 'avalanche' }),
  },
  PAYMENT_INVALID_TX_HASH_FORMAT: {
    'a short hash': HASH.slice(0, -1),
    'a long hash': `${HASH}a`,
    'no hex': `0x${'g'.repeat(64)}`,
    'a short hash in JSON': base64({ txHash: '0xabc' }),
    'a hash that is a number': base64({ txHash: 7 }),
  },
  PAYMENT_IDENTIFIER_INVALID: {
    'too short': identified('a'.repeat(15)),
    'too long': identified('a'.repeat(129)),
    'with a space': identified('a name of sixteen characters'),
    'a number': identified(1234567890123456),
  },
};
for (const [code, cases] of Object.entries(REFUSED)) {
  for (const [what, header] of Object.entries(cases))
    test(`${what}: ${code}`, () => assert.equal(codeOf(header), code));
}

test('a wrong field is named', () => {
  assert.throws(
    () => read(changed({ nonce: 'no' })),
    (error: PaymentRefused) => error.details.field === 'payload.authorization.nonce',
  );
});

test('any text that can be sent is either read or refused', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    fc.json().map((json) => Buffer.from(json).toString('base64')),
    fc.json(),
    fc.constantFrom(1_000, 5_000).map((depth) => '{"a":'.repeat(depth)),
  );
  fc.assert(
    fc.property(text, text, (one, other) => {
      for (const headers of [
        { 'payment-signature': one },
        { 'x-payment': one, 'payment-signature': other },
      ]) {
        assert.ok(hasPayment(headers));
        codeOf(headers);
      }
    }),
    { numRuns: 1_000 },
  );
  assert.equal(hasPayment({ authorization: 'Bearer x' }), false);
});

test('any value that resembles a payment is either read or refused', () => {
  const junk = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('', '0x', -1, 1e308, '__proto__', HASH, SOLANA_SIGNATURE),
  );
  const paths = [
    ['x402Version'],
    ['accepted'],
    ['accepted', 'scheme'],
    ['accepted', 'network'],
    ['scheme'],
    ['network'],
    ['txHash'],
    ['extensions'],
    ['extensions', 'payment-identifier'],
    ['extensions', 'payment-identifier', 'info'],
    ['extensions', 'payment-identifier', 'info', 'id'],
    ['payload'],
    ['payload', 'signature'],
    ['payload', 'authorization'],
    ...Object.keys(authorization).map((name) => ['payload', 'authorization', name]),
  ];
  fc.assert(
    fc.property(fc.constantFrom(v1, v2), fc.constantFrom(...paths), junk, (sent, path, value) => {
      const copy: Record<string, unknown> = structuredClone({
        ...sent,
        extensions: { 'payment-identifier': { info: { id: 'a-name-of-16-chars' } } },
      });
      let target = copy;
      for (const name of path.slice(0, -1)) {
        target[name] ??= {};
        target = target[name] as Record<string, unknown>;
      }
      target[path.at(-1) ?? ''] = value;
      codeOf(base64(copy));
    }),
    { numRuns: 1_000 },
  );
});

test('a header has an end, an amount is not below nothing, and a claim from our terms is read', () => {
  const long = JSON.stringify({ ...v2, filler: 'f'.repeat(16_000) });
  assert.equal(codeOf(long), 'PAYMENT_DECODE_FAILED');
  for (const [value, code] of [
    [-1, 'PAYMENT_DECODE_FAILED'],
    [1, 'read'],
  ] as const) {
    const sent = { ...v2, payload: { ...payload, authorization: { ...authorization, value } } };
    assert.equal(codeOf(base64(sent)), code);
  }
  const claimSecret = 'c'.repeat(43);
  const presented = read(base64({ ...v2, accepted: { ...accepted, extra: { claimSecret } } }));
  assert(presented.scheme === 'exact-evm');
  assert.equal(presented.claim, claimSecret);
});

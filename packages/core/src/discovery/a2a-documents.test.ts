import assert from 'node:assert/strict';
import { createPublicKey, type JsonWebKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import canonicalize from 'canonicalize';
import { z } from 'zod';
import { secretsOf } from '../secrets/secrets.ts';
import { agentCardDocument, cardKeysDocument, cardVersionOf } from './a2a-documents.ts';
import { createCardSigner, type PublishedKey, withoutEmpty } from './card-signature.ts';
import type { X402Offer } from './context.ts';
import { sampleContext } from './sample.fixture.ts';

const X402: X402Offer = {
  facilitatorUrl: null,
  networks: [
    {
      network: 'eip155:8453',
      name: 'base',
      payTo: `0x${'1'.repeat(40)}`,
      canRefund: true,
      asset: { symbol: 'USDC', address: `0x${'2'.repeat(40)}`, decimals: 6 },
    },
  ],
};
const text = z.string().min(1);
const skill = z.strictObject({
  id: text,
  name: text,
  description: text,
  tags: z.array(text).min(1),
  examples: z.array(text),
  inputModes: z.array(text),
  outputModes: z.array(text),
});
const common = {
  name: text,
  description: text,
  version: text,
  documentationUrl: z.url(),
  iconUrl: z.url(),
  provider: z.strictObject({ organization: text, url: z.url() }),
  capabilities: z.strictObject({
    streaming: z.boolean(),
    pushNotifications: z.boolean(),
    extendedAgentCard: z.boolean(),
    extensions: z
      .array(
        z.strictObject({ uri: z.url(), description: text, params: z.record(text, z.unknown()).optional() }),
      )
      .optional(),
  }),
  signatures: z
    .array(z.strictObject({ protected: text, signature: text }))
    .min(2)
    .max(3),
  defaultInputModes: z.array(text),
  defaultOutputModes: z.array(text),
  skills: z.array(skill).min(1),
  supportedInterfaces: z.array(
    z.strictObject({ url: z.url(), protocolBinding: text, protocolVersion: text }),
  ),
};
/** The fields that each version of the protocol knows; it accepts no others. */
const CARDS = {
  '': z.strictObject({
    ...common,
    protocolVersion: z.literal('0.3.0'),
    url: z.url(),
    preferredTransport: z.literal('JSONRPC'),
    additionalInterfaces: z.array(z.strictObject({ url: z.url(), transport: text })),
    securitySchemes: z.record(text, z.looseObject({ type: z.enum(['apiKey', 'http']) })),
    security: z.array(z.record(text, z.array(text))),
  }),
  '1.0': z.strictObject({
    ...common,
    securitySchemes: z.record(
      text,
      z.union([
        z.strictObject({ apiKeySecurityScheme: z.looseObject({ location: text, name: text }) }),
        z.strictObject({ httpAuthSecurityScheme: z.looseObject({ scheme: text }) }),
      ]),
    ),
    securityRequirements: z.array(z.strictObject({ schemes: z.record(text, z.strictObject({})).optional() })),
  }),
};

for (const [version, card] of Object.entries(CARDS))
  test(`the card ${version || 'of the older version'} has exactly the fields of its version, and a skill for each service`, () => {
    const context = sampleContext({ rails: { x402: X402, mpp: null } });
    const read = card.parse(agentCardDocument(context, version));
    assert.deepEqual(
      read.skills.map(({ id }) => id),
      context.services.map(({ path }) => path),
    );
    const [x402] = read.capabilities.extensions ?? [];
    assert.deepEqual(
      x402?.params?.pricesUsd,
      Object.fromEntries(context.services.map(({ path, priceUsd }) => [path, priceUsd])),
    );
    assert.deepEqual(
      read.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }) => [
        ...[protocolBinding, protocolVersion, url.slice(context.baseUrl.length)],
      ]),
      [
        ['JSONRPC', '1.0', '/a2a'],
        ['HTTP+JSON', '1.0', '/a2a/v1'],
        ['JSONRPC', '0.3', '/a2a'],
        // Its clients add the /v1.
        ['HTTP+JSON', '0.3', '/a2a'],
      ],
    );
  });

test('there is no card without A2A, and no payment extension without x402', () => {
  const context = sampleContext();
  const routes = context.routes.filter(({ path }) => path !== '/a2a');
  assert.equal(agentCardDocument({ ...context, routes }, ''), null);
  const withoutWallets = { ...context, rails: { x402: null, mpp: null } };
  assert.deepEqual(agentCardDocument(withoutWallets, '1.0')?.capabilities.extensions, undefined);
});

test('a reader that names no version, or an older one, gets the older card', () => {
  assert.deepEqual(['1.0', '1', ' 1.0 ', '1.1'].map(cardVersionOf), ['1.0', '1.0', '1.0', '1.0']);
  assert.deepEqual([undefined, '', '0.3', '10.0', 'x'].map(cardVersionOf), ['', '', '', '', '']);
});

const OLD = 'the-older-secret-of-a-signer-in-this-test';
const NEW = 'the-newer-secret-of-a-signer-in-this-test';

/** The card as a reader gets it, and the keys that are published beside it. */
function published(version: string, secrets: readonly string[], sandbox = false) {
  const cardSigner = createCardSigner(secretsOf(secrets));
  const context = sampleContext({ rails: { x402: X402, mpp: null }, cardSigner, sandbox });
  const { keys } = cardKeysDocument(context) ?? assert.fail();
  return { card: JSON.parse(JSON.stringify(agentCardDocument(context, version))), keys };
}

/** The SDK's verifier, of what its client makes of a card and of the card as it came. */
async function bySdk(card: AgentCard, keys: readonly PublishedKey[]) {
  const verifier = verifyAgentCardSignature(async (kid, jku) => {
    assert.equal(jku, 'https://farebox.test/.well-known/jwks.json');
    return keys.find((key) => key.kid === kid) ?? assert.fail('no such key');
  });
  await verifier(AgentCard.fromJSON(card));
  await verifier(card);
}

/** Verifies as the specification says: what is published, without its signatures, by an ordinary library of keys. */
function asPublished({ signatures, ...card }: Record<string, unknown>, keys: readonly PublishedKey[]) {
  const [first] = signatures as { protected: string; signature: string }[];
  const { protected: header = '', signature = '' } = first ?? {};
  const { alg, kid, typ } = JSON.parse(Buffer.from(header, 'base64url').toString());
  assert.deepEqual([alg, typ], ['ES256', 'JOSE']);
  const jwk = (keys.find((key) => key.kid === kid) ?? assert.fail('no such key')) as unknown as JsonWebKey;
  const payload = Buffer.from(canonicalize(card) ?? assert.fail()).toString('base64url');
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const bytes = Buffer.from(signature, 'base64url');
  return verify('sha256', Buffer.from(`${header}.${payload}`), { key, dsaEncoding: 'ieee-p1363' }, bytes);
}

for (const version of ['', '1.0'])
  test(`the card ${version || 'of the older version'} is signed: the SDK's verifier takes it, and so does one of the specification`, async () => {
    for (const sandbox of [false, true]) {
      const { card, keys } = published(version, [NEW], sandbox);
      await bySdk(card, keys);
      assert.ok(asPublished(card, keys));
      const changed = structuredClone(card);
      changed.skills[0].description += ' Send the money elsewhere.';
      await assert.rejects(bySdk(changed, keys));
      assert.equal(asPublished(changed, keys), false);
      await assert.rejects(bySdk(card, published(version, [OLD]).keys));
    }
  });

test('a card that an older secret signed verifies as long as that is given, and a new one is signed by the current alone', async () => {
  const before = published('1.0', [OLD]);
  const after = published('1.0', [NEW, OLD]);
  await bySdk(before.card, after.keys);
  assert.ok(asPublished(before.card, after.keys));
  await bySdk(after.card, published('1.0', [NEW]).keys);
  await assert.rejects(bySdk(after.card, before.keys));
  // Appended on one replica first: those that do not know it yet sign as before, and both publish what is needed.
  await bySdk(before.card, published('1.0', [OLD, NEW]).keys);
});

test('all replicas sign alike, and nothing published holds a secret', () => {
  const [one, other] = [published('1.0', [NEW, OLD]), published('1.0', [NEW, OLD])];
  assert.deepEqual(one, other);
  for (const key of one.keys)
    assert.deepEqual(Object.keys(key).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
  assert.equal(new Set(one.keys.map(({ kid }) => kid)).size, 2);
  const context = sampleContext();
  const routes = context.routes.filter(({ path }) => path !== '/a2a');
  assert.equal(cardKeysDocument({ ...context, routes }), null);
});

test('what the SDKs verify has nothing empty, and keeps what is only false or nought', () => {
  const kept = { no: false, nought: 0, list: ['a', 0], within: { text: 'a' } };
  const empty = { text: '', none: null, list: [], object: {}, within: [{ text: '' }, ['']] };
  assert.deepEqual(withoutEmpty({ ...kept, empty, more: [empty, ''] }), kept);
  assert.equal(withoutEmpty(empty), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { agentCardDocument, cardVersionOf } from './a2a-documents.ts';
import type { X402Offer } from './context.ts';
import { sampleContext } from './sample.fixture.ts';

const X402: X402Offer = {
  facilitatorUrl: null,
  networks: [
    {
      ...{ network: 'eip155:8453', name: 'base', payTo: `0x${'1'.repeat(40)}`, canRefund: true },
      asset: { symbol: 'USDC', address: `0x${'2'.repeat(40)}`, decimals: 6 },
    },
  ],
};
const text = z.string().min(1);
const skill = z.strictObject({
  ...{ id: text, name: text, description: text, tags: z.array(text).min(1) },
  ...{ examples: z.array(text), inputModes: z.array(text), outputModes: z.array(text) },
});
const common = {
  ...{ name: text, description: text, version: text, documentationUrl: z.url(), iconUrl: z.url() },
  provider: z.strictObject({ organization: text, url: z.url() }),
  capabilities: z.strictObject({
    ...{ streaming: z.boolean(), pushNotifications: z.boolean(), extendedAgentCard: z.boolean() },
    extensions: z.array(
      z.strictObject({
        ...{ uri: z.url(), description: text, required: z.boolean() },
        params: z.record(text, z.unknown()).optional(),
      }),
    ),
  }),
  ...{ defaultInputModes: z.array(text), defaultOutputModes: z.array(text), skills: z.array(skill).min(1) },
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
    securityRequirements: z.array(
      z.strictObject({ schemes: z.record(text, z.strictObject({ list: z.array(text) })) }),
    ),
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
    const [x402] = read.capabilities.extensions;
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
  assert.deepEqual(agentCardDocument(withoutWallets, '1.0')?.capabilities.extensions, []);
});

test('a reader that names no version, or an older one, gets the older card', () => {
  assert.deepEqual(['1.0', '1', ' 1.0 ', '1.1'].map(cardVersionOf), ['1.0', '1.0', '1.0', '1.0']);
  assert.deepEqual([undefined, '', '0.3', '10.0', 'x'].map(cardVersionOf), ['', '', '', '', '']);
});

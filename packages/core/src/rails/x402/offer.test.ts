import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePaymentRequired } from '@x402/core/schemas';
import { validateDiscoveryExtension } from '@x402/extensions/bazaar';
import { z } from 'zod';
import { loadServices } from '../../../../catalogue/src/services/registry.ts';
import type { Quote } from '../../paid-call/rail.ts';
import { NETWORKS } from './networks.ts';
import { legacyAccepts, paymentRequiredHeader } from './offer.ts';
import type { OfferedNetwork } from './offered.ts';
import type { SignInChallenge } from './sign-in.ts';

const EVERYWHERE: OfferedNetwork[] = NETWORKS.map((network) => ({
  network,
  payTo: network.kind === 'evm' ? '0x000000000000000000000000000000000000dEaD' : 'So1anaRecipient',
  feePayer: network.kind === 'evm' ? null : 'So1anaFeePayer',
  sandbox: false,
}));
const quotes: Quote[] = (await loadServices()).map((service) => ({
  service,
  priceMicros: 50_000n,
  resourceUrl: `https://shop.test/x402/${service.path}`,
}));
/** Where an index finds what is bought. */
const ANSWER = z.object({
  properties: z.object({ example: z.object({ properties: z.record(z.string(), z.unknown()).optional() }) }),
});
/** A service whose answer holds no secret, so its terms are the same each time. */
const quote = quotes.find(({ service }) => !service.secretAnswer);
assert.ok(quote !== undefined);

function challenge(nonce = () => 'n0nce'): SignInChallenge {
  let made = { nonce: '', issuedAt: '2026-01-01T00:00:00.000Z', expirationTime: '2026-01-01T00:05:00.000Z' };
  return {
    fixed: (resourceUrl) => ({
      supportedChains: [{ chainId: 'eip155:8453', type: 'eip191' }],
      schema: {},
      info: { domain: 'shop.test', uri: resourceUrl, version: '1' },
    }),
    fresh() {
      if (made.nonce !== nonce()) made = { ...made, nonce: nonce() };
      return made;
    },
    check: async () => '',
    dropExpired: async () => {},
  };
}

/** Decodes as a strict client does: one base64 text, with padding only at its end. */
function decode(header: string): Record<string, unknown> {
  assert.match(header, /^[A-Za-z0-9+/]+={0,2}$/);
  assert.equal(header.length % 4, 0);
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'base64')));
}

for (const each of quotes) {
  test(`${each.service.path}: its header fits the protocol's own schema, and is small`, () => {
    const header = paymentRequiredHeader(EVERYWHERE, each, challenge()).current();
    const document = decode(header);
    const parsed = parsePaymentRequired(document);
    assert.ok(parsed.success, JSON.stringify(parsed.error));
    const { bazaar } = z.object({ bazaar: z.unknown() }).parse(document.extensions);
    assert.ok(header.length < 6_000, `${header.length} bytes, of the 8 kB that proxies take for all headers`);
    const described = z
      .object({ schema: z.object({ properties: z.object({ output: ANSWER }) }) })
      .parse(bazaar);
    if (each.service.mediaType === 'application/json')
      assert.deepEqual(
        Object.keys(described.schema.properties.output.properties.example.properties ?? {}),
        Object.keys(each.service.output.shape),
      );
    const verdict = validateDiscoveryExtension(bazaar as Parameters<typeof validateDiscoveryExtension>[0]);
    assert.ok(verdict.valid, verdict.errors?.join());
  });
}

test('the terms of each chain, in order', () => {
  const { accepts } = decode(paymentRequiredHeader(EVERYWHERE, quote, challenge()).current());
  assert.deepEqual(accepts, [
    ...(
      [
        ['eip155:8453', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'],
        ['eip155:1', '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'],
        ['eip155:137', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'],
        ['eip155:42161', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'],
      ] as const
    ).map(([network, asset]) => ({
      scheme: 'exact',
      network,
      amount: '50000',
      asset,
      payTo: '0x000000000000000000000000000000000000dEaD',
      maxTimeoutSeconds: 120,
      extra: { name: 'USD Coin', version: '2' },
    })),
    {
      scheme: 'exact',
      network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      amount: '50000',
      asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
      payTo: 'So1anaRecipient',
      maxTimeoutSeconds: 120,
      extra: { feePayer: 'So1anaFeePayer' },
    },
  ]);
});

test('the two halves of the header fit together, whatever the length of the first', () => {
  const lengths = new Set<number>();
  for (let extra = 0; extra < 12; extra++) {
    for (const letter of ['a', 'é', '€', '😀']) {
      const resourceUrl = `https://shop.test/${letter.repeat(extra)}`;
      const header = paymentRequiredHeader(EVERYWHERE, { ...quote, resourceUrl }, challenge());
      for (const [text, error] of [
        [header.current(), 'X-PAYMENT header is required'],
        [header.refused('PAYMENT_EXPIRED'), 'PAYMENT_EXPIRED'],
      ] as const) {
        const document = z
          .object({
            error: z.string(),
            resource: z.object({ url: z.string() }),
            extensions: z.object({ 'sign-in-with-x': z.object({ info: z.record(z.string(), z.unknown()) }) }),
          })
          .parse(decode(text));
        assert.equal(document.error, error);
        assert.equal(document.resource.url, resourceUrl);
        assert.deepEqual(document.extensions['sign-in-with-x'].info, {
          domain: 'shop.test',
          uri: resourceUrl,
          version: '1',
          nonce: 'n0nce',
          issuedAt: '2026-01-01T00:00:00.000Z',
          expirationTime: '2026-01-01T00:05:00.000Z',
        });
        lengths.add(Buffer.byteLength(JSON.stringify(document)) % 3);
      }
    }
  }
  assert.equal(lengths.size, 3, 'every alignment came up');
});

test('the header carries a current nonce, and nothing else in it changes', () => {
  let nonce = 'first';
  const header = paymentRequiredHeader(
    EVERYWHERE,
    quote,
    challenge(() => nonce),
  );
  const first = header.current();
  assert.equal(header.current(), first);
  nonce = 'second';
  const second = header.current();
  assert.notEqual(second, first);
  assert.deepEqual(JSON.stringify(decode(second)).replace('second', 'first'), JSON.stringify(decode(first)));
});

test("the body's offers fit both protocol versions, on chains that version 1 knows", () => {
  const accepts = legacyAccepts(EVERYWHERE, { ...quote, priceMicros: 1_234_500n });
  assert.deepEqual(
    accepts.map(({ network, x402Network }) => [network, x402Network]),
    [
      ['base', 'eip155:8453'],
      ['polygon', 'eip155:137'],
      ['solana', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
    ],
  );
  const parsed = parsePaymentRequired({ x402Version: 1, error: 'X', accepts });
  assert.ok(parsed.success, JSON.stringify(parsed.error));
  assert.deepEqual(
    accepts.map((each) => [each.maxAmountRequired, each.description]),
    [quote.service.summary, quote.service.name, quote.service.name].map((text) => ['1234500', text]),
  );
  assert.deepEqual([accepts[0]?.amount, accepts[0]?.maxAmountRequiredUSD], ['1234500', 1.2345]);
});

test('each 402 of a service with a secret answer has its own claim, the same for all chains; other services have none', () => {
  const claimsIn = (header: string) =>
    (decode(header).accepts as { extra: { claimSecret?: string } }[]).map(({ extra }) => extra.claimSecret);
  const seen = new Set<string | undefined>();
  let secretServices = 0;
  for (const each of quotes) {
    const header = paymentRequiredHeader(EVERYWHERE, each, challenge());
    const answers = [header.current(), header.current(), header.refused('WHY'), header.refused('WHY')];
    const claims = answers.map((answer) => {
      const [claim, ...others] = claimsIn(answer);
      assert.equal(others.length, EVERYWHERE.length - 1);
      assert.ok(others.every((other) => other === claim));
      return claim;
    });
    if (!each.service.secretAnswer) {
      assert.deepEqual([...new Set(claims)], [undefined], each.service.path);
      assert.equal(answers[0], answers[1], 'it is made once');
      continue;
    }
    secretServices += 1;
    for (const claim of claims) {
      assert.match(claim ?? '', /^[\w-]{32}$/);
      assert.ok(!seen.has(claim), 'a claim came twice');
      seen.add(claim);
    }
  }
  assert.equal(secretServices, 3);
});

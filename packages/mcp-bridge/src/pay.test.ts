/** Tests that the bridge decides what a wallet signs, whatever a server asks for. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { getBase58Decoder } from '@solana/kit';
import { findDefaultAsset as evmAsset } from '@x402/evm';
import { findDefaultAsset as solanaAsset } from '@x402/svm';
import { NETWORKS, type Payer, type Terms, USDC } from 'farebox/buying';
import { type Hex, recoverTypedDataAddress } from 'viem';
import { createPayer, termsOf } from './pay.ts';
import { readSettings } from './settings.ts';

const offer = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: USDC['eip155:8453'],
  amount: '250000',
  payTo: '0x000000000000000000000000000000000000dEaD',
  maxTimeoutSeconds: 120,
  extra: { name: 'USD Coin', version: '2' },
};
const required = (...accepts: object[]) => ({ x402Version: 2 as const, price_usd: 0.25, accepts });
const none = { priceMicros: 250_000n, sandbox: false, x402: null, challenges: [] };
const terms = (...accepts: object[]): Terms => ({ ...none, x402: required(...accepts) });
const quoteOf = (payer: Payer, asked: Terms, named: string | null = null) => {
  const quote = payer.quote(asked, named, Date.now());
  return 'pay' in quote ? quote : quote.why;
};
const walletOf = async (more: Record<string, string> = {}) =>
  (await createPayer(readSettings({ FAREBOX_EVM_PRIVATE_KEY: `0x${'1'.repeat(64)}`, ...more }))) ??
  assert.fail();

test('a wallet pays what is signed, not what is said, and for no longer than an hour', async () => {
  const wallet = await walletOf();
  const quote = quoteOf(wallet, terms({ ...offer, amount: '9000000' }), null);
  assert.ok(typeof quote !== 'string');
  assert.equal(quote.micros, 9_000_000n);
  const { signed } = await quote.pay();
  const { authorization } = (signed['x402/payment'] as { payload: { authorization: Record<string, string> } })
    .payload;
  assert.equal(authorization.value, '9000000');
  assert.equal(authorization.to, offer.payTo);
  assert.equal(wallet.endsAtMs(signed, 0), Number(authorization.validBefore) * 1_000);
});

test('what is not one transfer of USDC is not signed', async () => {
  const wallet = await walletOf();
  for (const change of [
    { asset: '0x4200000000000000000000000000000000000006' },
    { network: 'eip155:56' },
    { scheme: 'upto' },
    { maxTimeoutSeconds: 86_400 },
    { maxTimeoutSeconds: 9 },
    { extra: { ...offer.extra, assetTransferMethod: 'permit2' } },
    { amount: '-1' },
    { amount: '1e3' },
    { amount: 250000 },
  ])
    assert.match(String(quoteOf(wallet, terms({ ...offer, ...change }), null)), /on none of the networks/);
  assert.equal(typeof quoteOf(wallet, terms({ ...offer, scheme: 'upto' }, offer), null), 'object');
});

test('the networks are tried in the order of the person, and no other', async () => {
  const elsewhere = { ...offer, network: 'eip155:137', asset: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359' };
  const chosen = async (networks: string) => {
    const quote = quoteOf(await walletOf({ FAREBOX_NETWORKS: networks }), terms(offer, elsewhere));
    if (typeof quote === 'string') return null;
    const { signed } = await quote.pay();
    return (signed['x402/payment'] as { accepted: { network: string } }).accepted.network;
  };
  assert.equal(await chosen('polygon,base'), 'eip155:137');
  assert.equal(await chosen('base,polygon'), 'eip155:8453');
  assert.equal(await chosen('solana,ethereum'), null);
});

test('USDC is what the libraries of wallets know as such', () => {
  assert.deepEqual(Object.keys(USDC).sort(), Object.values(NETWORKS).sort());
  for (const [network, asset] of Object.entries(USDC)) {
    if (network === NETWORKS.tempo) continue;
    const known = network.startsWith('solana') ? solanaAsset : evmAsset;
    assert.notEqual(known(asset, network as never), undefined, network);
  }
});

test('a price is read from a result that asks for one, and from no other', () => {
  const asked = { isError: true, structuredContent: required(offer) };
  assert.equal(termsOf(asked)?.priceMicros, 250_000n);
  assert.equal(termsOf({ ...asked, isError: false }), null);
  assert.equal(termsOf({ isError: true, structuredContent: { x402Version: 1, accepts: [] } }), null);
  assert.equal(termsOf({ isError: true }), null);
});

test('a key pays what is said in whole micro-dollars', async () => {
  const key = (await createPayer(readSettings({ FAREBOX_API_KEY: 'fbx_live_test' }))) ?? assert.fail();
  const priced = (price_usd: number): Terms =>
    termsOf({ isError: true, structuredContent: { ...required(), price_usd } }) ?? assert.fail();
  const quote = quoteOf(key, priced(0.0000001), null);
  assert.match(String(quote), /no price/, 'no whole micro-dollar');
  const dear = quoteOf(key, priced(0.07), 'my-name');
  assert.ok(typeof dear !== 'string');
  assert.equal(dear.micros, 70_000n);
  assert.deepEqual((await dear.pay()).signed, { 'farebox/idempotencyKey': 'my-name' });
});

describe('by MPP', () => {
  const nowMs = Date.now();
  const inMs = (ms: number) => new Date(nowMs + ms).toISOString();
  const evm = {
    id: 'a-challenge',
    realm: 'farebox.test',
    method: 'evm',
    intent: 'charge',
    expires: inMs(300_000),
    request: {
      amount: '250000',
      currency: USDC[NETWORKS.base],
      recipient: offer.payTo,
      methodDetails: { chainId: 8453, credentialTypes: ['authorization'], decimals: 6 },
    },
  };
  const withRequest = (change: object) => ({ ...evm, request: { ...evm.request, ...change } });
  const withDetails = (change: object) =>
    withRequest({ methodDetails: { ...evm.request.methodDetails, ...change } });
  const both = (...challenges: object[]): Terms => ({ ...terms(offer), challenges });
  const onlyMpp = (...challenges: object[]): Terms => ({ ...none, challenges });
  const wayOf = async (wallet: Payer, asked: Terms) => {
    const quote = quoteOf(wallet, asked, null);
    return typeof quote === 'string' ? null : Object.keys((await quote.pay()).signed)[0];
  };
  const MPP = 'org.paymentauth/credential';

  test('a wallet pays by MPP where the server takes no x402, or where its owner wants that', async () => {
    const usual = await walletOf();
    assert.equal(await wayOf(usual, both(evm)), 'x402/payment');
    assert.equal(await wayOf(usual, onlyMpp(evm)), MPP);
    const elsewhere: Terms = { ...terms({ ...offer, network: 'eip155:56' }), challenges: [evm] };
    assert.equal(await wayOf(usual, elsewhere), MPP);
    const chosen = await walletOf({ FAREBOX_PAY_BY: 'mpp' });
    assert.equal(await wayOf(chosen, both(evm)), MPP);
    assert.match(String(quoteOf(chosen, terms(offer), null)), /by mpp on none of the networks/);
    const never = await walletOf({ FAREBOX_PAY_BY: 'x402' });
    assert.equal(await wayOf(never, onlyMpp(evm)), null);
    assert.throws(() => readSettings({ FAREBOX_PAY_BY: 'cash' }), /FAREBOX_PAY_BY/);
  });

  test('it signs what the challenge asks, and the credential ends with its challenge', async () => {
    const wallet = await walletOf();
    const quote = quoteOf(wallet, onlyMpp(withRequest({ amount: '9000000' })), null);
    assert.ok(typeof quote !== 'string');
    assert.equal(quote.micros, 9_000_000n);
    const { signed } = await quote.pay();
    const { payload } = signed[MPP] as { payload: Record<`0x${string}` | string, string> };
    const { from, to, value, validBefore, nonce, signature } = payload;
    assert.deepEqual([to, value], [offer.payTo, '9000000']);
    assert.ok(Number(validBefore) * 1_000 <= (wallet.endsAtMs(signed, nowMs) ?? 0));
    const signer = await recoverTypedDataAddress({
      domain: {
        name: 'USD Coin',
        version: '2',
        chainId: 8453,
        verifyingContract: USDC[NETWORKS.base] as Hex,
      },
      types: {
        TransferWithAuthorization: [
          { name: 'from', type: 'address' },
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'validAfter', type: 'uint256' },
          { name: 'validBefore', type: 'uint256' },
          { name: 'nonce', type: 'bytes32' },
        ],
      },
      primaryType: 'TransferWithAuthorization',
      message: {
        from: from as Hex,
        to: to as Hex,
        value: BigInt(value ?? 0),
        nonce: nonce as Hex,
        validAfter: 0n,
        validBefore: BigInt(validBefore ?? 0),
      },
      signature: signature as Hex,
    });
    assert.equal(signer, from);
  });

  test('what is not one transfer of USDC is not signed', async () => {
    const wallet = await walletOf({ FAREBOX_NETWORKS: 'base,polygon' });
    for (const change of [
      withRequest({ currency: '0x4200000000000000000000000000000000000006' }),
      withRequest({ amount: '-1' }),
      withRequest({ amount: 250000 }),
      withRequest({ recipient: 'me' }),
      withDetails({ chainId: 1 }),
      withDetails({ chainId: 137 }),
      withDetails({ credentialTypes: ['permit2'] }),
      withDetails({ splits: [{ amount: '1', recipient: offer.payTo }] }),
      { ...evm, intent: 'session' },
      { ...evm, method: 'stripe' },
      { ...evm, expires: inMs(9_000) },
      { ...evm, expires: inMs(7_200_000) },
      { ...evm, expires: undefined },
      { ...evm, method: 'tempo' },
    ])
      assert.equal(await wayOf(wallet, onlyMpp(change)), null, JSON.stringify(change));
    assert.equal(await wayOf(wallet, onlyMpp({ ...evm, method: 'stripe' }, evm)), MPP);
  });

  test('a price is read from challenges too, and Tempo is paid on only where it was asked for', async () => {
    const asked = { isError: true, _meta: { 'org.paymentauth/payment-required': { challenges: [evm] } } };
    assert.deepEqual(termsOf(asked), { ...onlyMpp(evm), priceMicros: null });
    assert.equal(termsOf({ ...asked, isError: false }), null);
    const onTempo = {
      ...evm,
      method: 'tempo',
      request: {
        amount: '250000',
        currency: USDC[NETWORKS.tempo],
        recipient: offer.payTo,
        methodDetails: { chainId: 4217 },
      },
    };
    assert.equal(typeof quoteOf(await walletOf(), onlyMpp(onTempo)), 'string');
    const wallet = await walletOf({ FAREBOX_NETWORKS: 'tempo' });
    assert.equal(typeof quoteOf(wallet, onlyMpp(onTempo), null), 'object');
    for (const change of [{ supportedModes: ['push'] }, { machineTokenEnabled: true }]) {
      const methodDetails = { chainId: 4217, ...change };
      const changed = { ...onTempo, request: { ...onTempo.request, methodDetails } };
      assert.equal(typeof quoteOf(wallet, onlyMpp(changed), null), 'string', JSON.stringify(change));
    }
    // By x402 nothing is signed for Tempo.
    const x402 = { ...offer, network: NETWORKS.tempo, asset: USDC[NETWORKS.tempo] };
    assert.equal(typeof quoteOf(wallet, terms(x402), null), 'string');
  });

  test('what a node fails with is told without its address, in which a key may stand', async (t) => {
    let fail = (_response: ServerResponse) => {};
    const node = createServer((_request, response) => fail(response)).listen(0, '127.0.0.1');
    await once(node, 'listening');
    t.after(() => {
      node.closeAllConnections();
      node.close();
    });
    const at = `127.0.0.1:${(node.address() as AddressInfo).port}`;
    const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
    const solanaKey = getBase58Decoder().decode(
      Buffer.concat([d ?? '', x ?? ''].map((half) => Buffer.from(half, 'base64url'))),
    );
    const onTempo = {
      ...evm,
      method: 'tempo',
      request: {
        amount: '250000',
        currency: USDC[NETWORKS.tempo],
        recipient: offer.payTo,
        methodDetails: { chainId: 4217 },
      },
    };
    const system = '11111111111111111111111111111111';
    const onSolana = {
      ...offer,
      network: NETWORKS.solana,
      asset: USDC[NETWORKS.solana],
      payTo: system,
      extra: { feePayer: system },
    };
    const whyNot = async (url: string, onChain: 'tempo' | 'solana') => {
      const [wallet, asked] =
        onChain === 'tempo'
          ? [await walletOf({ FAREBOX_NETWORKS: 'tempo', FAREBOX_TEMPO_RPC_URL: url }), onlyMpp(onTempo)]
          : [
              await createPayer(
                readSettings({ FAREBOX_SOLANA_PRIVATE_KEY: solanaKey, FAREBOX_SOLANA_RPC_URL: url }),
              ),
              terms(onSolana),
            ];
      const quote = quoteOf(wallet ?? assert.fail(), asked);
      assert.ok(typeof quote !== 'string');
      const error = await quote.pay().then(
        () => assert.fail(`${onChain} was paid`),
        (error: Error) => error,
      );
      assert.notEqual(error.cause, undefined);
      return error.message;
    };
    const SECRET = 'a-key-of-the-owner';
    const answers: [string, (response: ServerResponse) => void, RegExp][] = [
      ['too many', (response) => response.writeHead(429).end(), /429/],
      ['no JSON', (response) => response.end('no'), /./],
      [
        'it repeats the key',
        (response) =>
          response.end(
            JSON.stringify({
              jsonrpc: '2.0',
              id: 0,
              error: { code: -32_005, message: `${SECRET} has run out` },
            }),
          ),
        /./,
      ],
    ];
    for (const [name, answer, expected] of answers) {
      fail = answer;
      for (const onChain of ['tempo', 'solana'] as const)
        for (const url of [
          `http://${at}/v2/${SECRET}`,
          `http://${at}/?key=${SECRET}`,
          `http://me:${SECRET}@${at}/`,
        ]) {
          const words = await whyNot(url, onChain);
          assert.doesNotMatch(words, new RegExp(`${SECRET}|${at}|://`), `${name}, ${onChain}: ${words}`);
          if (!url.includes('@')) assert.match(words, expected, `${name}, ${onChain}: ${words}`);
        }
    }
  });
});

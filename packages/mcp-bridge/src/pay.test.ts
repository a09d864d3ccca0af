/** What a wallet signs is decided here, whatever a server asks for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findDefaultAsset as evmAsset } from '@x402/evm';
import { findDefaultAsset as solanaAsset } from '@x402/svm';
import { createPayer, type Terms, termsOf } from './pay.ts';
import { NETWORKS, readSettings } from './settings.ts';
import { USDC } from './usdc.ts';

const offer = {
  scheme: 'exact',
  network: 'eip155:8453',
  asset: USDC['eip155:8453'],
  amount: '250000',
  payTo: '0x000000000000000000000000000000000000dEaD',
  maxTimeoutSeconds: 120,
  extra: { name: 'USD Coin', version: '2' },
};
const terms = (...accepts: object[]): Terms => ({ x402Version: 2, price_usd: 0.25, accepts });
const walletOf = async (more: Record<string, string> = {}) =>
  (await createPayer(readSettings({ FAREBOX_EVM_PRIVATE_KEY: `0x${'1'.repeat(64)}`, ...more }))) ??
  assert.fail();

test('a wallet pays what is signed, not what is said, and for no longer than an hour', async () => {
  const wallet = await walletOf();
  const quote = wallet.quote(terms({ ...offer, amount: '9000000' }), null);
  assert.ok(typeof quote !== 'string');
  assert.equal(quote.micros, 9_000_000n);
  const { meta } = await quote.pay();
  const { authorization } = (meta['x402/payment'] as { payload: { authorization: Record<string, string> } })
    .payload;
  assert.equal(authorization.value, '9000000');
  assert.equal(authorization.to, offer.payTo);
  assert.equal(wallet.endsAtMs(meta, 0), Number(authorization.validBefore) * 1_000);
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
    assert.match(String(wallet.quote(terms({ ...offer, ...change }), null)), /on none of the networks/);
  assert.equal(typeof wallet.quote(terms({ ...offer, scheme: 'upto' }, offer), null), 'object');
});

test('the networks are tried in the order of the person, and no other', async () => {
  const elsewhere = { ...offer, network: 'eip155:137', asset: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359' };
  const chosen = async (networks: string) => {
    const quote = (await walletOf({ FAREBOX_NETWORKS: networks })).quote(terms(offer, elsewhere), null);
    if (typeof quote === 'string') return null;
    const { meta } = await quote.pay();
    return (meta['x402/payment'] as { accepted: { network: string } }).accepted.network;
  };
  assert.equal(await chosen('polygon,base'), 'eip155:137');
  assert.equal(await chosen('base,polygon'), 'eip155:8453');
  assert.equal(await chosen('solana,ethereum'), null);
});

test('USDC is what the libraries of wallets know as such', () => {
  assert.deepEqual(Object.keys(USDC).sort(), Object.values(NETWORKS).sort());
  for (const [network, asset] of Object.entries(USDC)) {
    const known = network.startsWith('solana') ? solanaAsset : evmAsset;
    assert.notEqual(known(asset, network as never), undefined, network);
  }
});

test('a price is read from a result that asks for one, and from no other', () => {
  const asked = { isError: true, structuredContent: terms(offer) };
  assert.equal(termsOf(asked)?.price_usd, 0.25);
  assert.equal(termsOf({ ...asked, isError: false }), null);
  assert.equal(termsOf({ isError: true, structuredContent: { x402Version: 1, accepts: [] } }), null);
  assert.equal(termsOf({ isError: true }), null);
});

test('a key pays what is said in whole micro-dollars', async () => {
  const key = (await createPayer(readSettings({ FAREBOX_API_KEY: 'fbx_live_test' }))) ?? assert.fail();
  const quote = key.quote({ ...terms(), price_usd: 0.0000001 }, null);
  assert.match(String(quote), /no price/, 'no whole micro-dollar');
  const dear = key.quote({ ...terms(), price_usd: 0.07 }, 'my-name');
  assert.ok(typeof dear !== 'string');
  assert.equal(dear.micros, 70_000n);
  assert.deepEqual((await dear.pay()).meta, { 'farebox/idempotencyKey': 'my-name' });
});

/** What the package promises: the published client of each real part works against the stand-in, which it finds by its face. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { accountsOf } from '@farebox/sandbox/accounts';
import { startCardProvider } from '@farebox/sandbox/cards';
import { startEvmChain } from '@farebox/sandbox/chain';
import { fund } from '@farebox/sandbox/chain/faucet';
import { startFacilitator } from '@farebox/sandbox/facilitator';
import { startMailbox } from '@farebox/sandbox/mailbox';
import { startSolana } from '@farebox/sandbox/solana';
import { signerOf } from '@farebox/sandbox/solana/accounts';
import { createUpstreamSandbox } from '@farebox/sandbox/sources';
import { startTempo } from '@farebox/sandbox/tempo';
import { fundTempo } from '@farebox/sandbox/tempo/faucet';
import { createSolanaRpc, createSolanaRpcSubscriptions } from '@solana/kit';
import { x402Client } from '@x402/core/client';
import { HTTPFacilitatorClient } from '@x402/core/http';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { createTransport } from 'nodemailer';
import Stripe from 'stripe';
import { createPublicClient, createWalletClient, http, parseAbi } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { tempo } from 'viem/tempo/chains';

const SEED = 'an installation that this test alone has';
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_E = '0x20C000000000000000000000b9537d11c60E8b50';
const USDC_ON_SOLANA = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const TOKEN = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
]);
const { recipient, facilitator } = accountsOf(SEED);

test('the table of the faces names each of them', () => {
  const read = (name: string) => readFileSync(join(import.meta.dirname, '..', name), 'utf8');
  const { exports }: { exports: Record<string, string> } = JSON.parse(read('package.json'));
  const readme = read('README.md');
  const unnamed = Object.keys(exports).filter(
    (face) => !/accounts|faucet/.test(face) && !readme.includes(`| \`@farebox/sandbox${face.slice(1)}\` |`),
  );
  assert.deepEqual(unnamed, []);
});

test('chain and facilitator: viem pays on the chain, and a payment that x402 signs is verified and settled', async (context) => {
  const chain = await startEvmChain({ seed: SEED, stateDir: null });
  context.after(() => chain.stop());
  const payer = privateKeyToAccount(generatePrivateKey());
  await fund(chain.url, payer.address, { usdcMicros: 1_000_000n, ethWei: 10n ** 16n });
  const client = createPublicClient({ chain: base, transport: http(chain.url), pollingInterval: 20 });
  const held = () =>
    client.readContract({ address: USDC, abi: TOKEN, functionName: 'balanceOf', args: [recipient.address] });
  const wallet = createWalletClient({ account: payer, chain: base, transport: http(chain.url) });
  const beforeMicros = await held();
  const hash = await wallet.writeContract({
    address: USDC,
    abi: TOKEN,
    functionName: 'transfer',
    args: [recipient.address, 250_000n],
  });
  assert.equal((await client.waitForTransactionReceipt({ hash })).status, 'success');
  assert.equal((await held()) - beforeMicros, 250_000n);

  const server = await startFacilitator({
    evm: { rpcUrl: chain.url, privateKeys: [facilitator.privateKey] },
    solana: null,
  });
  context.after(() => server.stop());
  const published = new HTTPFacilitatorClient({ url: server.url });
  const { kinds } = await published.getSupported();
  assert(kinds.some(({ network, scheme }) => network === 'eip155:8453' && scheme === 'exact'));
  const requirements = {
    scheme: 'exact',
    network: 'eip155:8453',
    amount: '50000',
    asset: USDC,
    payTo: recipient.address,
    maxTimeoutSeconds: 300,
    extra: { name: 'USD Coin', version: '2' },
  } as const;
  const signed = await new x402Client()
    .register('eip155:8453', new ExactEvmScheme(payer))
    .setSpendControls(false)
    .createPaymentPayload({
      x402Version: 2,
      resource: { url: 'https://sandbox.test/x402/ping', mimeType: 'application/json' },
      accepts: [requirements],
    });
  assert.equal((await published.verify(signed, requirements)).isValid, true);
  assert.equal((await published.settle(signed, requirements)).success, true);
  assert.equal((await held()) - beforeMicros, 300_000n);
});

test('tempo: viem reads what its faucet gave', async (context) => {
  const chain = await startTempo({ seed: SEED, stateDir: null });
  context.after(() => chain.stop());
  const { address } = privateKeyToAccount(generatePrivateKey());
  await fundTempo(chain.url, address, 1_000_000n);
  const client = createPublicClient({ chain: tempo, transport: http(chain.url) });
  assert.equal(await client.getChainId(), tempo.id);
  const balance = await client.readContract({
    address: USDC_E,
    abi: TOKEN,
    functionName: 'balanceOf',
    args: [address],
  });
  assert.equal(balance, 1_000_000n);
});

test('solana: kit reads accounts, and is told of slots', async (context) => {
  const chain = await startSolana({ seed: SEED, stateDir: null });
  context.after(() => chain.stop());
  const rpc = createSolanaRpc(chain.url);
  const { value: mint } = await rpc.getAccountInfo(USDC_ON_SOLANA as never, { encoding: 'base64' }).send();
  assert(mint !== null);
  const { address } = await signerOf(SEED, 'facilitator');
  assert((await rpc.getBalance(address).send()).value > 0n);
  const stop = new AbortController();
  const slots = await createSolanaRpcSubscriptions(chain.wsUrl)
    .slotNotifications()
    .subscribe({ abortSignal: stop.signal });
  for await (const { slot } of slots) {
    assert(slot > 0n);
    break;
  }
  stop.abort();
});

test('cards: the official library pays with a test card', async (context) => {
  const secretKey = 'sk_test_faces';
  const provider = await startCardProvider({ stateDir: null, webhooks: [], secretKey });
  context.after(() => provider.stop());
  const { hostname, port } = new URL(provider.url);
  const stripe = new Stripe(secretKey, { host: hostname, port, protocol: 'http', telemetry: false });
  const intent = await stripe.paymentIntents.create({
    amount: 500,
    currency: 'usd',
    payment_method: 'pm_card_visa',
    confirm: true,
    automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
  });
  assert.deepEqual([intent.status, intent.livemode], ['succeeded', false]);
});

test('mailbox: a mail that nodemailer sends is there to be read', async (context) => {
  const mailbox = await startMailbox({ stateDir: null });
  context.after(() => mailbox.stop());
  const transport = createTransport(mailbox.smtpUrl);
  context.after(() => transport.close());
  const sent = await transport.sendMail({
    from: 'shop@example.com',
    to: 'owner@example.org',
    subject: 'Your key',
    text: 'It is here.',
  });
  assert.deepEqual(sent.accepted, ['owner@example.org']);
  const page = await (await fetch(mailbox.url)).text();
  assert(page.includes('Your key'));
});

test('sources: each answers below its name, labelled as sandbox', async (context) => {
  const sources = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: 1 });
  const { url } = await sources.start();
  context.after(() => sources.stop());
  const reply = await fetch(`${url}/kraken/0/public/Depth?pair=XBTUSD&count=1`);
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get('x-farebox-sandbox'), 'upstreams');
  assert.match(await reply.text(), /^\{"error":\[\],"result":\{"XXBTZUSD":\{"asks":\[\[/);
});

// Buys one call with a wallet:
//
//   WALLET_KEY=0x… node examples/buy-with-wallet.mjs [service] [body as JSON]
//
// `npm run sandbox:wallet` prints a key that works here, and `npm start` has installed what is imported below. With a
// server elsewhere set FAREBOX_URL. In a program of your own @x402/fetch does the same in fewer lines; this one shows
// each step, and the one thing that a buyer must get right: when the end is not known, the same payment again.
import { setTimeout as sleep } from 'node:timers/promises';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm';
import { privateKeyToAccount } from 'viem/accounts';

const MOST_TRIES = 10;
/** By default clients refuse to pay more than 1 USD. */
const MOST_USD = '$10';

const { WALLET_KEY, FAREBOX_URL = 'http://127.0.0.1:8402' } = process.env;
const [service = 'first-call', body = '{}'] = process.argv.slice(2);
if (!/^0x[0-9a-f]{64}$/i.test(WALLET_KEY ?? ''))
  fail('set WALLET_KEY to a private key: 0x and 64 hex digits.');

const account = privateKeyToAccount(WALLET_KEY);
const signer = new x402Client().register('eip155:*', new ExactEvmScheme(account));
signer.setSpendControls({ maxAmountPerPayment: MOST_USD });
const x402 = new x402HTTPClient(signer);
const url = `${FAREBOX_URL}/x402/${service}`;
const headers = { 'content-type': 'application/json' };

// 1. Ask. The answer is a 402 with the terms in PAYMENT-REQUIRED.
const asked = await fetch(url, { method: 'POST', headers, body }).catch(() =>
  fail(`nobody answers at ${FAREBOX_URL}.`),
);
if (asked.status !== 402) fail(`expected a 402, got ${asked.status}: ${await asked.text()}`);
const terms = x402.getPaymentRequiredResponse((name) => asked.headers.get(name), await asked.json());

// 2. Sign the terms. Nothing is sent to a chain, and the wallet needs no gas.
const payment = x402.encodePaymentSignatureHeader(await x402.createPaymentPayload(terms));

// 3. Send the same request with the payment until it is answered, and never with another payment.
const answer = await sendUntilKnown();
const text = await answer.text();
if (!answer.ok) fail(`${answer.status}: ${text}`);
const receipt = x402.getPaymentSettleResponse((name) => answer.headers.get(name));
console.log(text);
console.log(
  `\n${Number(receipt.amount) / 1e6} USDC from ${receipt.payer}, in transaction ${receipt.transaction}`,
);
console.log(`Receipt: ${FAREBOX_URL}/x402/receipts/${answer.headers.get('x-call-id')}`);

async function sendUntilKnown() {
  for (let tries = 1; ; tries++) {
    // After a lost connection, as after a 503, it is unknown whether the payment was taken.
    const response = await fetch(url, { method: 'POST', headers: { ...headers, ...payment }, body }).catch(
      () => null,
    );
    if (response !== null && (response.status !== 503 || tries === MOST_TRIES)) return response;
    if (tries === MOST_TRIES)
      fail(`no answer after ${MOST_TRIES} tries; the payment is still good for this call.`);
    await sleep(1_000 * Number(response?.headers.get('retry-after') ?? 2));
  }
}

function fail(message) {
  console.error(`buy-with-wallet: ${message}`);
  process.exit(1);
}

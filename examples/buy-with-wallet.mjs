// Buys one call with a wallet:
//
//   WALLET_KEY=0x… npm run example -- buy-with-wallet [service] [body as JSON]
//
// `npm run sandbox:wallet` prints a key that works here; with it set FAREBOX_SANDBOX_WALLET=true, for no other wallet pays
// a sandbox. With a server elsewhere set FAREBOX_URL. What was paid is kept in a folder until its answer has arrived: run
// it again after a crash, and the same payment is sent.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createFarebox, FareboxError } from 'farebox';
import { fileStore } from 'farebox/node';
import { x402Wallet } from 'farebox/x402';

const { WALLET_KEY, FAREBOX_SANDBOX_WALLET } = process.env;
const [service = 'first-call', body = '{}'] = process.argv.slice(2);
if (!/^0x[0-9a-f]{64}$/i.test(WALLET_KEY ?? ''))
  fail('set WALLET_KEY to a private key: 0x and 64 hex digits.');

const farebox = createFarebox({
  wallets: [await x402Wallet({ evm: WALLET_KEY, sandbox: FAREBOX_SANDBOX_WALLET === 'true' })],
  // Above the 1 USD that a client pays for a call without being told.
  limits: { maxCallMicros: 10_000_000n },
  store: fileStore(join(homedir(), '.farebox', 'example')),
  log: (line) => console.error(`buy-with-wallet: ${line}`),
});

try {
  const { output, receipt } = await farebox.buy(service, JSON.parse(body));
  console.log(JSON.stringify(output));
  console.log(`\n${receipt.amountUsd} USDC, in transaction ${receipt.transaction}\nReceipt: ${receipt.url}`);
} catch (error) {
  if (!(error instanceof FareboxError)) throw error;
  fail(`${error.message} (${error.code}, charged: ${error.charged})`);
}

function fail(message) {
  console.error(`buy-with-wallet: ${message}`);
  process.exit(1);
}

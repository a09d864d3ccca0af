/** A program that buys one call by the client and prints its answer: what a test kills on the way. */
import { createFarebox } from 'farebox';
import { fileStore } from 'farebox/node';
import { x402Wallet } from 'farebox/x402';

const { FAREBOX_URL = '', STORE = '', API_KEY = '', WALLET_KEY = '' } = process.env;
const wallets =
  WALLET_KEY === '' ? [] : [await x402Wallet({ evm: WALLET_KEY as `0x${string}`, sandbox: true })];
const farebox = createFarebox({
  url: FAREBOX_URL,
  store: fileStore(STORE),
  wallets,
  ...(API_KEY === '' ? {} : { apiKey: API_KEY }),
});
const { output, receipt } = await farebox.buy('ping', { message: 'from a program' });
process.stdout.write(JSON.stringify({ output, receipt, spent: String(await farebox.spentToday()) }));

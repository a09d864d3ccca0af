/** A program that buys by a store in a folder, or holds the lock of it until it is killed: tests start it as a process of its own. */
import { createFarebox } from './client.ts';
import { FareboxError } from './errors.ts';
import { fileStore } from './node.ts';
import { x402Wallet } from './x402.ts';

const [work, folder = '', url = ''] = process.argv.slice(2);
const store = fileStore(folder);
if (work === 'hold')
  await store.exclusively?.(async () => {
    process.stdout.write('held\n');
    await new Promise((resolve) => setInterval(resolve, 1 << 30));
  });
const wallets = [await x402Wallet({ evm: `0x${'1'.repeat(64)}` })];
const farebox = createFarebox({ url, wallets, store });
const said = await farebox.call('ping').catch((error) => error);
process.stdout.write(
  JSON.stringify(said instanceof FareboxError ? [said.code, said.charged, said.message] : said),
);

/** `npm run sandbox:reset`: forgets everything that `npm start` keeps. Refuses while it runs. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stopEmbeddedPostgres } from '../../process/src/embedded-postgres.ts';
import { isAlive } from '../../process/src/is-alive.mjs';
import { dataDirOf } from './data-dir.ts';

const dataDir = dataDirOf(process.env);
const lock = join(dataDir, 'server.pid');
if (existsSync(lock) && isAlive(Number(readFileSync(lock, 'utf8')))) {
  process.stderr.write(`farebox: a server runs on ${dataDir}; stop it first.\n`);
  process.exit(1);
}
// Only what npm start made: a folder without its marks is somebody else's.
if (existsSync(join(dataDir, 'secret'))) {
  await stopEmbeddedPostgres(dataDir);
  const made = ['postgres', 'chain', 'ethereum', 'solana', 'tempo', 'cards', 'mailbox', 'mqtt', 'signers'];
  const secrets = [
    'secret',
    'wallet-key',
    'mpp-key',
    'card-key',
    'card-webhook-secret',
    'admin-token',
    'accounts-seed',
    'devices-key',
    'mqtt-key.pem',
    'mqtt-cert.pem',
  ];
  const ours = new Set([...made, ...secrets, 'world.json', 'server.pid', 'sandbox-key-issued']);
  for (const name of readdirSync(dataDir)) {
    // The id of a process follows where one was killed before it had given a file its name.
    if (ours.has(name.replace(/\.\d+$/, ''))) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
  process.stdout.write(`Forgot everything below ${dataDir}.\n`);
} else process.stdout.write(`There is nothing to forget below ${dataDir}.\n`);

/**
 * The signer processes of the sandbox: the process that starts the world plays them, so that the server holds no key that signs
 * transactions. It is `npm run signer` that is played, at a Unix socket for each key.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { StartError } from '../../process/src/start-error.ts';

const CORE = join(import.meta.dirname, '../../core/src');
/** What `signer:SOCKET@ADDRESS` may name: a path of Linux and macOS, where sockets have at most 104 bytes. */
const SOCKET = /^\/[\w./-]{1,100}$/;
const LONGEST_NAME = '/refunds-solana.sock';

/** Where each key can be had. */
interface Signers {
  /** By the name of the key: `signer:SOCKET@ADDRESS`. */
  named: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

interface HeldKey {
  address: string;
}
interface SignerProcess {
  startSigner(key: HeldKey, socketPath: string): Promise<{ close(): Promise<void> }>;
}

/** Whether sockets can be had here as the server names them. Windows has pipes in their place. */
export const HAS_SOCKETS = process.platform !== 'win32';

/**
 * Holds keys, each behind a socket of its own.
 *
 * @param dataDir holds the sockets, unless its path is too long for one
 * @param keys private keys by their names
 * @throws StartError when one cannot be served; none is then
 */
export async function startSigners(
  dataDir: string,
  keys: Readonly<Record<string, string>>,
): Promise<Signers> {
  const own = join(dataDir, 'signers');
  const isOwn = SOCKET.test(own + LONGEST_NAME);
  const folder = isOwn ? own : mkdtempSync(join(tmpdir(), 'farebox-signers-'));
  if (isOwn) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const load = (file: string) => import(pathToFileURL(join(CORE, file + extname(import.meta.filename))).href);
  const serving: { close(): Promise<void> }[] = [];
  const stop = async () => {
    await Promise.all(serving.splice(0).map((signer) => signer.close()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const [{ heldKey }, { startSigner }]: [{ heldKey(text: string): HeldKey }, SignerProcess] =
      await Promise.all([load('rails/x402/held-key'), load('relayer/signer-process')]);
    const named = await Promise.all(
      Object.entries(keys).map(async ([name, text]) => {
        const key = heldKey(text);
        const socket = join(folder, `${name}.sock`);
        serving.push(await startSigner(key, socket));
        return [name, `signer:${socket}@${key.address}`] as const;
      }),
    );
    return { named: Object.fromEntries(named), stop };
  } catch (cause) {
    await stop();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(`the sandbox's signers did not start: ${why}`, { cause });
  }
}

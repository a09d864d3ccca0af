import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../process/src/free-port.ts';

/**
 * Starts something on the port that it had last time, so that addresses that were given out still lead to it. If
 * another program has taken that port, it gets another one, which is kept from then on.
 *
 * @param folder where the port is stored, in a file of this name
 * @param start takes the port to listen on
 */
export async function onKeptPort<Part extends { url: string }>(
  folder: string,
  start: (port: number) => Promise<Part>,
): Promise<Part> {
  const file = join(folder, 'port');
  const written = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
  const port = Number.isInteger(written) && written > 0 && written < 65_536 ? written : await freePort();
  const part = await start(port).catch((error: NodeJS.ErrnoException) => {
    // A part whose node is a process of its own knows only what that said.
    if (!/EADDRINUSE|address already in use/i.test(error.message)) throw error;
    return freePort().then(start);
  });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(file, new URL(part.url).port);
  return part;
}

/** The port that something had last time which another process opens: free now, and kept for the next time. */
export async function keptPort(folder: string, host: string): Promise<string> {
  const { port } = await onKeptPort(folder, async (wanted) => {
    const server = createServer();
    server.listen(wanted, host);
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return { url: `tcp://localhost:${wanted}`, port: String(wanted) };
  });
  return port;
}

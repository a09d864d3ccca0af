import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Linux gives outgoing connections ports from 32768 on, macOS and Windows from 49152 on (RFC 6335 §6). A port from
 * there may become the end of somebody's connection between the moment when it is found free and the moment when a
 * server listens on it, or while that server restarts.
 */
const FIRST = 20_000;
const BEHIND_LAST = 32_768;
const HOST = '127.0.0.1';

/**
 * Finds a TCP port for a server that another process will open: nobody listens on it on this machine, no outgoing
 * connection gets it from the system, and no other call of this function gets it while this process lives.
 *
 * @returns its number, from 20000 to 32767
 * @throws when all of them are taken
 */
export async function freePort(): Promise<number> {
  const count = BEHIND_LAST - FIRST;
  const start = randomInt(count);
  for (let tried = 0; tried < count; tried++) {
    const port = FIRST + ((start + tried) % count);
    if ((await claim(port)) && (await nobodyListens(port))) return port;
  }
  throw new Error(`no port from ${FIRST} to ${BEHIND_LAST - 1} is free`);
}

/** Holds the UDP port of the same number until the process ends: a sign for others who look, which no crash leaves behind. */
async function claim(port: number): Promise<boolean> {
  const sign = createSocket('udp4').unref();
  try {
    sign.bind({ port, address: HOST, exclusive: true });
    await once(sign, 'listening');
    return true;
  } catch {
    sign.close();
    return false;
  }
}

async function nobodyListens(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, host: HOST, exclusive: true });
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

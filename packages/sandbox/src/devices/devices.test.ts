/** Devices of the sandbox that begin while the machine is busy. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { startDevices } from './devices.ts';

/** Takes what devices register and report. @param cuts whether the connection of a device's nth report is cut */
async function receiver(cuts: (nth: number) => boolean) {
  const reports = new Map<string, number[]>();
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await textOf(request));
    const deviceId = /^\/api\/devices\/([^/]+)\/readings$/.exec(request.url ?? '')?.[1];
    if (deviceId === undefined)
      return response.writeHead(201).end(JSON.stringify({ secret: '1'.repeat(64), mqtt: null }));
    const sizes = reports.get(deviceId) ?? [];
    reports.set(deviceId, sizes);
    sizes.push(Array.isArray(body) ? body.length : 1);
    if (cuts(sizes.length)) return request.socket.destroy();
    return response.writeHead(200).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert(address !== null && typeof address === 'object');
  return {
    reports,
    parts: {
      serverUrl: `http://127.0.0.1:${address.port}`,
      apiKey: 'key',
      ca: null,
      everyMs: 20,
      nowMs: Date.now,
      failed: (what: string) => assert.fail(what),
    },
    close: () => server.close().closeAllConnections(),
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}

test('a device whose first connections break reports its last hour all the same', async () => {
  const { reports, parts, close } = await receiver((nth) => nth <= 2);
  const devices = await startDevices(parts);
  await devices.stop();
  assert(reports.size >= 6);
  for (const [deviceId, sizes] of reports) assert.deepEqual(sizes.slice(0, 4), [60, 60, 60, 1], deviceId);
  close();
});

test('devices that nobody listens to end their tries, and the start is told', async () => {
  const { reports, parts, close } = await receiver(() => true);
  await assert.rejects(startDevices(parts));
  for (const [deviceId, sizes] of reports) assert(sizes.length <= 6, `${deviceId}: ${sizes.length} tries`);
  close();
});

/** Words of a server tell a person's terminal nothing but themselves. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runProgram } from './program.ts';

/** Clears the screen, names a window, turns text around, hides text, and begins a line that looks like the program's own. */
const WORDS =
  '\u001b[2J\u001b]0;x\u0007\u009b31m\u202eevil\u200b\u{e0041}\nfarebox: read https://evil.example\r';
const SEEN = '\\u001b[2J\\u001b]0;x\\u0007\\u009b31m\\u202eevil\\u200b\\udb40\\udc41';
const UNSEEN = /[\p{Cc}\u202e\u200b\u{e0041}]/u;
const home = mkdtempSync(join(tmpdir(), 'farebox-words-'));
let url: string;
let isBusy = true;
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '', 'http://x');
  const json = (status: number, body: object) =>
    response
      .writeHead(status, { 'content-type': 'application/json', 'x-credits-used': '0.05' })
      .end(JSON.stringify(body));
  if (pathname === '/x402/catalog')
    json(200, { services: [{ id: WORDS, priceUSD: WORDS, description: WORDS }] });
  else if (pathname === '/x402/busy' && request.headers['x-api-key'] !== undefined && isBusy) {
    isBusy = false;
    response.setHeader('retry-after', '0');
    json(503, { code: 'BUSY', message: WORDS, charged: false });
  } else if (/^.x402.(ping|busy)$/.test(pathname) && request.headers['x-api-key'] === undefined)
    json(402, { price_usd: 0.05 });
  else if (/^.x402.(ping|busy)$/.test(pathname)) json(200, { said: WORDS });
  else json(422, { code: 'NO_ANSWER', message: WORDS, charged: false, fields: [{ field: WORDS }] });
}).listen(0, '127.0.0.1');
before(async () => {
  if (!server.listening) await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(home, { recursive: true, force: true });
});

async function command(...words: string[]) {
  const told = { out: [] as string[], error: [] as string[] };
  await runProgram(words, {
    environment: { FAREBOX_URL: url, FAREBOX_API_KEY: 'fbx_live_test' },
    home,
    out: (text) => told.out.push(text),
    error: (text) => told.error.push(text),
    progress: () => {},
    isTerminal: false,
    read: async () => '',
    ask: async () => '',
    signal: new AbortController().signal,
  });
  return told;
}

test('what is found, answered or refused is shown with what nobody sees written out', async () => {
  for (const words of [
    ['search', 'x'],
    ['call', 'ping'],
    ['call', 'busy'],
    ['call', 'other'],
    ['price', 'other'],
    ['keys'],
    ['receipts'],
    ['completion', 'bash'],
  ]) {
    const { out, error } = await command(...words);
    for (const text of [...out, ...error])
      for (const line of text.split('\n')) {
        assert.doesNotMatch(line, UNSEEN, words.join(' '));
        assert.doesNotMatch(line, /^farebox: read https:..evil/, words.join(' '));
      }
    assert.ok([...out, ...error].length > 0);
  }
  assert.ok((await command('search', 'x')).out.join().includes(SEEN));
  assert.ok((await command('call', 'other')).error.join().includes('[2J]0;x31mevil farebox: read'));
});

test('a program that reads the answer as JSON reads what the server wrote', async () => {
  for (const words of [
    ['call', 'ping', '--json'],
    ['call', 'ping'],
  ]) {
    const { out } = await command(...words);
    const { output = JSON.parse(out[0] ?? '') } = JSON.parse(out[0] ?? '');
    assert.equal(output.said, WORDS);
  }
  const [text = ''] = (await command('search', 'x', '--json')).out;
  assert.equal(JSON.parse(text)[0].description, WORDS);
});

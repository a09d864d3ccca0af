/** Where what pays may be sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings } from './settings.ts';
import { setupText } from './setup.ts';

const FAREBOX_API_KEY = 'fbx_live_test';
const FAREBOX_EVM_PRIVATE_KEY = `0x${'1'.repeat(64)}`;

test('a key or a wallet pays over https, or on this machine', () => {
  for (const FAREBOX_URL of ['http://farebox.example', 'http://10.0.0.1:8402', 'http://127.0.0.1.example']) {
    for (const pays of [{ FAREBOX_API_KEY }, { FAREBOX_EVM_PRIVATE_KEY }])
      assert.throws(() => readSettings({ FAREBOX_URL, ...pays }), /FAREBOX_URL must be of https/);
    assert.equal(readSettings({ FAREBOX_URL }).url.protocol, 'http:', 'nothing is sent that pays');
  }
  for (const FAREBOX_URL of [
    'https://farebox.example',
    'http://localhost:8402',
    'http://127.0.0.1:8402',
    'http://[::1]:8402',
  ])
    assert.equal(readSettings({ FAREBOX_URL, FAREBOX_API_KEY }).url.pathname, '/mcp');
});

test('an address that holds a name or a password is refused, and is not repeated', () => {
  for (const FAREBOX_URL of ['https://:secret@farebox.example', 'https://secret@farebox.example'])
    assert.throws(
      () => readSettings({ FAREBOX_URL }),
      ({ message }: Error) => message.startsWith('FAREBOX_URL') && !message.includes('secret'),
    );
});

test('a toolset goes into the address, and no other text does', () => {
  const { url } = readSettings({ FAREBOX_TOOLSET: 'core' });
  assert.equal(url.href, 'http://127.0.0.1:8402/mcp?toolset=core');
  assert.throws(() => readSettings({ FAREBOX_TOOLSET: 'a&b=1' }), /FAREBOX_TOOLSET must be core/);
});

test('each snippet of the setup names the server, lists the core, and has a limit', () => {
  const { url } = readSettings({ FAREBOX_URL: 'https://farebox.example', FAREBOX_TOOLSET: 'trading' });
  const text = setupText({ command: 'node', args: ['main.ts'] }, url);
  const bridges = text.split('"command"').length - 1;
  assert.ok(bridges > 0);
  for (const said of [
    '"FAREBOX_URL": "https://farebox.example"',
    '"FAREBOX_TOOLSET": "core"',
    'FAREBOX_MAX_USD_PER_CALL',
  ])
    assert.equal(text.split(said).length - 1, bridges, said);
  assert.match(text, /"url": "https:\/\/farebox\.example\/mcp\?toolset=core"/);
});

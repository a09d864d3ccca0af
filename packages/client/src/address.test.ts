/** `FAREBOX_URL` and `PORT` mean the same server in every program that is here. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { addressIn } from './address.ts';

const ROOT = join(import.meta.dirname, '../../..');

test('a server that is named wins over one that was named before, and that over a port', () => {
  const named = { FAREBOX_URL: 'https://farebox.example', PORT: '9000' };
  assert.equal(addressIn(named, 'https://kept.example'), 'https://farebox.example');
  assert.equal(addressIn({ PORT: '9000' }, 'https://kept.example'), 'https://kept.example');
  assert.equal(addressIn({ FAREBOX_URL: ' ', PORT: ' 9000 ' }), 'http://127.0.0.1:9000');
  for (const PORT of ['', '/run/a.socket', '99999999', '80@evil.example'])
    assert.equal(addressIn({ PORT }), 'http://127.0.0.1:8402');
});

test('every example asks the client where its server is, also where a variable is empty', () => {
  const examples = readdirSync(join(ROOT, 'examples'));
  assert.ok(examples.length > 2);
  for (const name of examples) {
    const text = readFileSync(join(ROOT, 'examples', name), 'utf8');
    assert.match(text, /import \{[^}]*\bcreateFarebox\b[^}]*\} from 'farebox'/, name);
    assert.doesNotMatch(text.replaceAll(/^\/\/.*$/gm, ''), /\bPORT\b|FAREBOX_URL/, name);
  }
  const { stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(ROOT, 'examples/earn-on-base.mjs')],
    {
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH,
        FAREBOX_URL: '',
        PORT: '1',
        WALLET_KEY: `0x${'1'.repeat(64)}`,
        BASE_RPC_URL: 'http://127.0.0.1:1',
      },
    },
  );
  assert.match(stderr, /nobody answers at http:\/\/127\.0\.0\.1:1\./);
});

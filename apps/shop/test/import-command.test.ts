import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { loadConfig } from '@farebox/proxy/config/load';

const ROOT = join(import.meta.dirname, '../../..');
const COMMAND = join(ROOT, 'apps/shop/src/commands/import.ts');

describe('npm run import', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-import-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, ...args], {
      cwd: folder,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  writeFileSync(
    join(folder, 'openapi.json'),
    JSON.stringify({
      openapi: '3.1.0',
      info: { title: 'Weather' },
      servers: [{ url: 'http://127.0.0.1:9000' }],
      security: [{ key: [] }],
      components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
      webhooks: { storm: {} },
      paths: { '/v1/stations/{id}': { get: { responses: { 200: { description: 'ok' } } } } },
    }),
  );

  test('writes a configuration that loads, and says what to set and what it left out', async () => {
    const made = run('openapi.json', '--price', '0.05');
    assert.deepEqual(made, {
      status: 0,
      stdout: [
        'farebox.config.yaml: 1 route at 0.05 USD',
        'set WEATHER_TOKEN: an access token',
        'left out: webhooks: the upstream makes those calls, and nobody sells them',
        '',
      ].join('\n'),
      stderr: '',
    });
    const file = join(folder, 'farebox.config.yaml');
    const config = await loadConfig(file, { env: { WEATHER_TOKEN: 'x' }, serviceNames: null });
    assert.deepEqual(
      config.routes.map(({ key, sale }) => [key, sale]),
      [['GET /v1/stations/:id', { kind: 'fixed', priceMicros: 50_000n }]],
    );
    const [, schema = ''] = /^# yaml-language-server: \$schema=(.*)$/m.exec(readFileSync(file, 'utf8')) ?? [];
    assert(existsSync(join(folder, schema)), schema);
  });

  test('overwrites nothing', () => {
    writeFileSync(join(folder, 'mine.yaml'), 'mine');
    const { status, stderr } = run('openapi.json', '--price', '0.05', '--out', 'mine.yaml');
    assert.equal(status, 2);
    assert.match(stderr, /mine\.yaml is there already/);
    assert.equal(readFileSync(join(folder, 'mine.yaml'), 'utf8'), 'mine');
  });

  test('says what is wrong with a call of it, and writes nothing', () => {
    const rows: [args: string[], says: RegExp][] = [
      [[], /name one OpenAPI document/],
      [['openapi.json'], /--price must be/],
      [['openapi.json', '--price', '0'], /--price must be/],
      [['openapi.json', '--price', '1e3'], /--price must be/],
      [['openapi.json', '--price', '1', '--cost', '2'], /Unknown option '--cost'/],
      [['absent.json', '--price', '1'], /absent\.json cannot be read/],
      [['openapi.json', '--price', '1', '--url', 'ftp://a'], /write an address that begins with http/],
    ];
    for (const [args, says] of rows) {
      const { status, stderr } = run(...args, '--out', 'other.yaml');
      assert.equal(status, 2, args.join(' '));
      assert.match(stderr, says, args.join(' '));
      assert(!existsSync(join(folder, 'other.yaml')));
    }
  });
});

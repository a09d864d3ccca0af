/**
 * The files that operators deploy by: they say what the documents promise, and what can be started here is started. What is not
 * installed is skipped, and the test's name says so.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DockerfileParser } from 'dockerfile-ast';
import { load } from 'js-yaml';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { STAYING } from '../../../../packages/process/src/node-flags.mjs';
import { until } from '../fire/until.fixture.ts';
import { programOf } from '../programs.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const PROGRAM = 'apps/shop/src/main.js';
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
// biome-ignore lint/suspicious/noExplicitAny: files of this repository are read as what they are
const yaml = (path: string): any => load(read(path));
const isInstalled = (program: string, ...args: string[]) => spawnSync(program, args).error === undefined;

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'shipped-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

test('the container file installs from the lock alone, ends as no root, and starts what is there', () => {
  const file = DockerfileParser.parse(read('ops/Containerfile'));
  const instructions = file.getInstructions().map((each) => ({
    keyword: each.getKeyword(),
    text: each.getArgumentsContent() ?? '',
  }));
  const known = new Set([
    'ARG',
    'FROM',
    'WORKDIR',
    'COPY',
    'RUN',
    'LABEL',
    'ENV',
    'USER',
    'EXPOSE',
    'HEALTHCHECK',
    'ENTRYPOINT',
  ]);
  assert.deepEqual(
    instructions.filter(({ keyword }) => !known.has(keyword)),
    [],
  );
  const last = (keyword: string) => instructions.findLast((each) => each.keyword === keyword)?.text;
  assert.equal(last('USER'), 'node');
  const runs = instructions
    .filter(({ keyword }) => keyword === 'RUN')
    .map(({ text }) => text)
    .join();
  assert.match(runs, /npm ci --omit=dev --ignore-scripts/);
  assert.match(runs, /node scripts\/bundle\.ts \/package\b.*npm sbom .* > \/package\/sbom\.cdx\.json$/s);
  assert.equal(last('COPY'), '/package /app');
  assert.doesNotMatch(runs, /npm (install|i) /);
  const [program, ...args]: string[] = JSON.parse(last('ENTRYPOINT') ?? '[]');
  assert.equal(program, 'node');
  assert.equal(args.at(-1), PROGRAM);
  assert.deepEqual(args.slice(0, -1), STAYING, 'as npm start has it');
  assert(
    instructions.filter(({ keyword }) => keyword === 'FROM').every(({ text }) => /^\$\{BASE\}/.test(text)),
  );
});

test('in the compose file nothing is writable that need not be, no secret is a variable, and the proxy alone is open', () => {
  const { services, secrets } = yaml('ops/compose.yaml');
  const { farebox, database, proxy } = services;
  assert.equal(farebox.read_only, true);
  for (const each of [farebox, database, proxy]) {
    assert.deepEqual(each.cap_drop, ['ALL']);
    assert.deepEqual(each.security_opt, ['no-new-privileges:true']);
  }
  assert.equal(farebox.ports, undefined);
  assert.equal(database.ports, undefined);
  assert.equal(farebox.environment.TRUSTED_PROXIES, proxy.networks.inside.ipv4_address);
  for (const each of [farebox, database]) {
    const named = Object.entries<string>(each.environment).filter(([name]) => name.endsWith('_FILE'));
    assert.deepEqual(
      named.map(([, path]) => path.replace('/run/secrets/', '')).toSorted(),
      each.secrets.toSorted(),
    );
    for (const name of each.secrets) assert(name in secrets, name);
  }
  assert(existsSync(join(ROOT, 'ops', farebox.build.context, farebox.build.dockerfile)));
});

test('the release has provenance and an SBOM, and its rights are those of each job', () => {
  const { permissions, jobs } = yaml('.github/workflows/release.yml');
  assert.deepEqual(permissions, { contents: 'read' });
  const runs = JSON.stringify(jobs);
  for (const wanted of ['npm publish --provenance', 'attest-build-provenance', 'attest-sbom', 'npm sbom'])
    assert(runs.includes(wanted), wanted);
  for (const job of Object.values<{ permissions: Record<string, string> }>(jobs))
    assert.equal(job.permissions['id-token'], 'write');
});

describe('the SBOM', () => {
  const place = (path: string, manifest: object) => {
    const at = join(folder, 'sbom', path);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'package.json'), JSON.stringify({ version: '1.0.0', ...manifest }));
  };
  const run = (command: string, cwd: string) => spawnSync(command, { cwd, encoding: 'utf8', shell: true });

  test('holds what the server shares with the tools of its tests, and none of those tools or of the sandbox', () => {
    place('.', {
      name: 'all',
      workspaces: ['apps/shop', 'sandbox'],
      devDependencies: { shared: '1.0.0', tool: '1.0.0' },
    });
    place('sandbox', { name: '@all/sandbox' });
    place('apps/shop', {
      name: '@all/shop',
      dependencies: { shared: '1.0.0' },
      devDependencies: { other: '1.0.0' },
    });
    place('node_modules/shared', { name: 'shared' });
    mkdirSync(join(folder, 'sbom/node_modules/@all'));
    for (const [name, at] of [
      ['shop', 'apps/shop'],
      ['sandbox', 'sandbox'],
    ] as const)
      symlinkSync(join('../..', at), join(folder, 'sbom/node_modules/@all', name), 'junction');
    const [command = ''] = DockerfileParser.parse(read('ops/Containerfile'))
      .getInstructions()
      .map((each) => (each.getArgumentsContent() ?? '').replaceAll('\\\n', ''))
      .filter((text) => text.includes('npm sbom'));
    const { status, stderr } = run(command.replace('/package/', './'), join(folder, 'sbom'));
    assert.equal(status, 0, stderr);
    const { components } = JSON.parse(readFileSync(join(folder, 'sbom/sbom.cdx.json'), 'utf8'));
    const names = components.map(({ purl }: { purl: string }) => purl.replace(/^pkg:npm\/(.*)@.*$/, '$1'));
    assert.deepEqual(names.toSorted(), ['%40all/shop', 'shared']);
    // The release makes its own in the same way.
    for (const each of command.split(' > ')[0]?.split(' && ') ?? [])
      assert(read('.github/workflows/release.yml').includes(each.trim()), each);
  });

  test('can be made: the lock file holds nothing that its packages contradict', () => {
    const { status, stdout, stderr } = run('npm ls --all --omit=dev --package-lock-only', ROOT);
    assert.deepEqual([status, stderr], [0, ''], stdout.slice(-2_000));
  });
});

describe('the systemd unit', () => {
  const unit = () => read('ops/systemd/farebox.service');
  const hasSystemd = isInstalled('systemd-analyze', '--version');

  test('is what systemd takes', { skip: hasSystemd ? false : 'systemd-analyze is not installed' }, () => {
    const path = join(folder, 'farebox.service');
    // Where Node is installed is no matter of the unit's.
    writeFileSync(path, unit().replace('/usr/bin/node', process.execPath).replace('/opt/farebox', ROOT));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], {
      encoding: 'utf8',
    });
    assert.deepEqual(
      [status, stderr.split('\n').filter((line) => line.includes('farebox.service'))],
      [0, []],
    );
  });

  test('starts the server by its own line, which a wrong configuration ends with the code that it does not restart after', async () => {
    const line = /^ExecStart=\/usr\/bin\/node (.*)$/m.exec(unit())?.[1] ?? '';
    assert.deepEqual(line.split(' ').slice(0, -1), STAYING, 'as npm start has it');
    assert.match(unit(), /^RestartPreventExitStatus=2$/m);
    const environment = { PATH: process.env.PATH ?? '', FAREBOX_MODE: 'production' };
    assert.equal(line.split(' ').at(-1), PROGRAM);
    const refused = spawnSync(process.execPath, [...STAYING, programOf('main')], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
    });
    assert.equal(refused.status, 2, refused.stderr);
    assert.match(refused.stderr, /FAREBOX_SECRET: must be set/);
  });
});

/** The headers of a caller's request as they reach the server. */
interface Heard {
  headers: IncomingHttpHeaders;
}

describe('behind the example of', () => {
  let echo: Server;
  let echoPort: number;
  const heard: Heard[] = [];
  before(async () => {
    echo = createServer(({ headers, url }, reply) => {
      // A balancer also asks on its own whether the server is ready, at any moment.
      if (url === '/') heard.push({ headers });
      reply.end('{}');
    });
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    echoPort = (echo.address() as AddressInfo).port;
  });
  after(() => {
    echo?.closeAllConnections();
    echo?.close();
  });

  const examples = [
    {
      name: 'nginx',
      program: 'nginx',
      version: '-v',
      file: 'ops/proxies/nginx.conf',
      at: (text: string, port: number, server: number) =>
        `daemon off; pid ${join(folder, 'nginx.pid')}; error_log stderr;\n${text}`
          .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
          .replace(/ *ssl_certificate.*\n/g, '')
          .replace(
            'http {',
            `http { access_log off; ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((each) => `${each}_temp_path ${join(folder, each)};`).join(' ')}`,
          )
          .replace('127.0.0.1:8402', `127.0.0.1:${server}`),
      args: (path: string) => ['-c', path],
    },
    {
      name: 'Caddy',
      program: 'caddy',
      version: 'version',
      file: 'ops/proxies/Caddyfile',
      at: (text: string, port: number, server: number) =>
        `{\n\tadmin off\n\tauto_https off\n}\n${text.replaceAll(/^#.*\n/gm, '')}`
          .replace('{$FAREBOX_SITE:https://calls.example.com}', `http://:${port}`)
          .replace('{$FAREBOX_SERVER:127.0.0.1:8402}', `127.0.0.1:${server}`),
      args: (path: string) => ['run', '--adapter', 'caddyfile', '--config', path],
    },
    {
      name: 'HAProxy',
      program: 'haproxy',
      version: '-v',
      file: 'ops/proxies/haproxy.cfg',
      at: (text: string, port: number, server: number) =>
        text
          .replace(/bind :443 .*/, `bind 127.0.0.1:${port}`)
          .replace('127.0.0.1:8402', `127.0.0.1:${server}`),
      args: (path: string) => ['-db', '-f', path],
    },
  ];

  for (const { name, program, version, file, at, args } of examples) {
    const skip = isInstalled(program, version) ? false : `${program} is not installed`;
    test(`${name}, a caller is who it is, and forged headers are dropped`, { skip }, async () => {
      const port = await freePort();
      const path = join(folder, `${program}.conf`);
      writeFileSync(path, at(read(file), port, echoPort));
      const proxy: ChildProcess = spawn(program, args(path), {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      });
      let words = '';
      proxy.stderr?.on('data', (bytes) => {
        words = `${words}${bytes}`.slice(-4_000);
      });
      try {
        await until(`${name} to pass a request on`, async () => {
          if (proxy.exitCode !== null) throw new Error(`${name} ended: ${words}`);
          return (await askedThrough(port)) === 200;
        });
        const { headers } = heard.at(-1) ?? { headers: {} };
        assert.deepEqual(
          {
            for: headers['x-forwarded-for'],
            proto: headers['x-forwarded-proto'],
            host: headers['x-forwarded-host'],
            forwarded: headers.forwarded,
            real: headers['x-real-ip'],
          },
          {
            for: '127.0.0.1',
            proto: 'http',
            host: 'calls.example.com',
            forwarded: undefined,
            real: undefined,
          },
        );
        assert.equal(headers['x-api-key'], 'passed-on');
      } finally {
        const ended = new Promise((resolve) => proxy.once('exit', resolve));
        proxy.kill('SIGTERM');
        await ended;
      }
    });
  }
});

/** A request of a caller who forges whatever names an address. */
function askedThrough(port: number): Promise<number | null> {
  const headers = {
    host: 'calls.example.com',
    'x-api-key': 'passed-on',
    'x-forwarded-for': '9.9.9.9',
    'x-forwarded-proto': 'gopher',
    'x-forwarded-host': 'evil.example.com',
    forwarded: 'for=9.9.9.9',
    'x-real-ip': '9.9.9.9',
  };
  return new Promise((resolve) => {
    const asking = request({ host: '127.0.0.1', port, path: '/', headers }, (reply) => {
      reply.resume();
      resolve(reply.statusCode ?? null);
    });
    asking.on('error', () => resolve(null));
    asking.end();
  });
}

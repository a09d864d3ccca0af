/** `npm run doctor` against a sandbox in which all is well, and in which one thing after another is broken. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { generatePrivateKey } from 'viem/accounts';
import { databaseOf, readConfig } from '../../../../packages/core/src/config.ts';
import { connectDatabase, type Database } from '../../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import { startEmbeddedPostgres } from '../../../../packages/process/src/embedded-postgres.ts';
import { startCardProvider } from '../../../../packages/sandbox/src/cards/card-provider.ts';
import { startEthereum } from '../../../../packages/sandbox/src/chain/chain.ts';
import { makeCertificate } from '../../../../packages/sandbox/src/devices/certificate.ts';
import { DECLARED } from '../../src/app.ts';
import { lookAtDatabase } from '../../src/doctor/database.ts';
import { examine } from '../../src/doctor/examination.ts';
import { type Finding, takeLooks } from '../../src/doctor/finding.ts';
import { lookAtMail } from '../../src/doctor/mail.ts';
import { lookAtDocuments, lookAtOperators } from '../../src/doctor/people.ts';
import { lookAtTls, type Names } from '../../src/doctor/public-address.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { programOf } from '../programs.fixture.ts';
import { startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { openForwardingProxy } from './forwarding-proxy.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const RUN = join(ROOT, 'packages/sandbox/src/run.ts');
const TOKEN = 'the-token-of-the-desk-in-this-test';
const CARD_KEY = 'sk_test_of_the_doctor_tests';
/** Longer than any look takes on a machine that is busy; a peer that stays silent is waited for so long. */
const PATIENT_MS = 60_000;

let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let cards: Awaited<ReturnType<typeof startCardProvider>>;
let server: TestServer;
let front: Awaited<ReturnType<typeof openForwardingProxy>>;
let mail: Server;
let environment: Record<string, string>;
let behind = '';

const NAMES: Names = {
  addressesOf: async () => ['8.8.4.4'],
  textsOf: async () => [],
};

before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  mail = await listening(createServer((socket) => socket.end('220 mail.example.com\r\n')));
  // It is told where the server is once that is known: the address in front of it is.
  front = await frontOf({ 'x-forwarded-for': '8.8.8.8' });
  cards = await startCardProvider({
    stateDir: null,
    webhooks: [{ url: `${front.url}/api/m2m/credits/webhook`, secret: 'whsec_of_the_doctor_tests' }],
    secretKey: CARD_KEY,
  });
  environment = {
    ...world.environment,
    FAREBOX_SECRET: 'a-secret-of-the-tests-and-of-nothing-else',
    X402_RELAYER_KEYS: world.chain.accounts.relayer.privateKey,
    PUBLIC_URL: front.url,
    SOURCE_TERMS_ACCEPTED: 'kraken',
    TRUSTED_PROXIES: 'loopback',
    ADMIN_TOKENS: `desk:${TOKEN}`,
    METRICS_TOKEN: 'the-token-of-metrics-in-this-test',
    DATABASE_URL: database.url,
    CARD_PROVIDER_URL: cards.url,
    CARD_PROVIDER_KEY: CARD_KEY,
    CARD_WEBHOOK_SECRET: 'whsec_of_the_doctor_tests',
    SMTP_URL: `smtp://127.0.0.1:${portOf(mail)}`,
    MAIL_FROM: 'shop@example.com',
  };
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment });
  behind = server.url;
});
after(async () => {
  for (const close of leftOpen) await close();
  await server?.close();
  mail?.close();
  await Promise.all([cards?.stop(), database?.close(), upstreams?.stop(), world?.stop()]);
});

async function reopen(): Promise<void> {
  await server.close();
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment });
  behind = server.url;
}

/** Closes what a test that failed has left open, so that the process can end. */
const leftOpen: (() => unknown)[] = [];

async function listening(made: Server): Promise<Server> {
  made.listen(0, '127.0.0.1');
  leftOpen.push(() => made.close());
  await once(made, 'listening');
  return made;
}

function portOf(made: Server): number {
  const address = made.address();
  assert(address !== null && typeof address === 'object');
  return address.port;
}

/** A proxy in front of the server of this file, which writes these headers into every request. */
async function frontOf(headers: Record<string, string>) {
  const opened = await openForwardingProxy(
    () => behind,
    ({ status, headers: told, answer, outgoing }) => outgoing.writeHead(status, told).end(answer),
    headers,
  );
  leftOpen.push(opened.close);
  return opened;
}

/** Looks at everything with these variables instead. */
async function found(
  change: Record<string, string> = {},
  options: { withinMs?: number; sql?: Database } = {},
) {
  const config = readConfig({ ...environment, ...change }, DECLARED);
  const { sql = database.sql, withinMs = PATIENT_MS } = options;
  return examine({
    config,
    database: databaseOf(config),
    sql,
    dkimSelector: null,
    names: NAMES,
    nowMs: Date.now,
    withinMs,
  });
}

/** The database of the tests is thrown away with them, and waits for no disk. */
const FORGETFUL = /^database: fsync is off and synchronous_commit on: /;
const mended = (findings: readonly Finding[]) =>
  findings
    .flatMap(({ step, verdict, found }) => (verdict === 'mend' ? [`${step}: ${found}`] : []))
    .filter((line) => !FORGETFUL.test(line));

test('where all is well nothing is to be mended, and each step has a word', async () => {
  const findings = await found();
  assert.deepEqual(mended(findings), []);
  const steps = [...new Set(findings.map(({ step }) => step))];
  assert.deepEqual(steps, [
    ...['domain', 'tls', 'server', 'clock', 'proxy', 'database', 'disk', 'node', 'facilitator', 'settler'],
    ...['refund key', 'cards', 'mail', 'your documents', 'sale', 'operators', 'alarms'],
  ]);
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/going-live.md'), 'utf8');
  const table = page.split('\n## The steps\n')[1] ?? '';
  const told = [...table.matchAll(/lines? (`[a-z -]+`(?: and `[a-z -]+`)*)/g)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([a-z -]+)`/g)].map(([, name]) => name),
  );
  // What it is to prove is seen by a request of one's own.
  assert.deepEqual(
    [...new Set(told)],
    steps.filter((step) => step !== 'server'),
    'the page has the same',
  );
  const of = (step: string) => findings.filter((each) => each.step === step && each.verdict === 'fine');
  for (const step of ['server', 'clock', 'proxy', 'node', 'settler', 'refund key', 'sale', 'alarms'])
    assert(of(step).length > 0, step);
  assert.equal(of('cards').length, 3);
  assert.equal(of('proxy')[0]?.found, 'this machine comes as 8.8.8.8, by x-forwarded-for');
});

test('what is not for sale is listed, with the reason', async () => {
  const closed = (await found()).filter(({ step, verdict }) => step === 'sale' && verdict === 'note');
  assert(closed.length > 0);
  for (const { found: told } of closed) assert.match(told, /^[a-z0-9-]+: \S/);
});

describe('one thing broken', () => {
  test('a node of another chain', async () => {
    const other = await startEthereum({ stateDir: null });
    leftOpen.push(other.stop);
    const told = mended(await found({ UPSTREAM_BASE_BASE_URL: other.url }));
    await other.stop();
    assert(told.includes('node: base: it is a node of chain 1, and not of 8453'), told.join('\n'));
  });

  test('a node that says nothing', async () => {
    const silent = await listening(createServer(() => {}));
    const url = `http://127.0.0.1:${portOf(silent)}/a-secret-of-the-node`;
    const findings = await found({ UPSTREAM_BASE_BASE_URL: url, FACILITATOR_URL: `${url}/x` });
    const told = mended(findings);
    silent.close();
    assert(!JSON.stringify(findings).includes('a-secret-of-the-node'));
    assert(
      told.some((each) => each.startsWith('node: it could not be looked at: ')),
      told.join('\n'),
    );
  });

  test('a mail server that says nothing is not waited for', async () => {
    const silent = await listening(createServer(() => {}));
    const told = mended(await found({ SMTP_URL: `smtp://127.0.0.1:${portOf(silent)}` }, { withinMs: 2_000 }));
    silent.close();
    assert(
      told.some((each) => each.startsWith('mail: ')),
      told.join('\n'),
    );
  });

  test('keys without gas', async () => {
    const [relayer, refunds] = [generatePrivateKey(), generatePrivateKey()];
    const told = mended(await found({ X402_RELAYER_KEYS: relayer, X402_REFUND_KEYS: refunds }));
    assert.match(told[0] ?? '', /^settler: base: 0x[0-9a-f]{40} holds 0\.000000 ETH for gas$/i);
    assert.match(told[1] ?? '', /^refund key: base: 0x[0-9a-f]{40} holds 0\.000000 ETH for gas$/i);
    assert.equal(told.length, 2);
  });

  test('a facilitator that settles no chain of ours, where we have no settler', async () => {
    const stranger = await listening(
      createServer((socket) => {
        const body = JSON.stringify({ kinds: [], extensions: [], signers: {} });
        socket.end(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        );
      }),
    );
    const url = `http://127.0.0.1:${portOf(stranger)}`;
    const told = mended(await found({ FACILITATOR_URL: url, X402_RELAYER_KEYS: '' }));
    stranger.close();
    assert.deepEqual(told, [`facilitator: ${url} does not settle base`]);
  });

  test('too few connections for all processes', async () => {
    await database.sql`
      insert into replicas (started_at, seen_at) select now(), now() from generate_series(1, 100)`;
    const told = mended(await found({ DATABASE_MAX_CONNECTIONS: '200' }));
    await database.sql`delete from replicas where clock_ahead_ms is null and beats = 0`;
    assert.match(
      told[0] ?? '',
      /^database: 10\d processes may open 2\d{4} connections of \d+ \(\d+ are open\)$/,
    );
    assert.equal(told.length, 1);
  });

  test('a schema of another version', async () => {
    await database.sql`insert into schema_migrations (name, checksum) values ('999_later.sql', 'x')`;
    const told = mended(await found());
    await database.sql`delete from schema_migrations where name = '999_later.sql'`;
    assert.deepEqual(told, ['database: its schema is of another version (999_later.sql)']);
  });

  test('a database that is too old, forgets what it confirmed, or is a standby', async () => {
    const facts = {
      version: 14,
      fsync: 'off',
      commits: 'local',
      standby: false,
      most: 100,
      reserved: 3,
      open: 1,
    };
    let connection = {};
    const look = async (change: object) => {
      const rows = async () => [{ ...facts, ...change, found: false }];
      const sql = Object.assign(rows, { options: { connection } }) as unknown as Database;
      const told = await lookAtDatabase({ sql, isEmbedded: false, maxConnections: 10 }).look(
        AbortSignal.timeout(PATIENT_MS),
      );
      return mended([told].flat());
    };
    assert.deepEqual((await look({})).slice(0, 2), [
      'database: PostgreSQL 14 is too old',
      'database: fsync is off and synchronous_commit local: an answer could be sold whose price a crash forgets',
    ]);
    assert.deepEqual(await look({ version: 17, fsync: 'on', standby: true }), [
      'database: it is a standby and takes no writes',
      'database: it has no tables of ours',
    ]);
    assert.equal((await look({ version: 17, fsync: 'on', commits: 'off' })).length, 2);
    connection = { application_name: 'farebox', statement_timeout: 3_500 };
    assert.deepEqual(await look({ version: 17 }), [
      'database: what stands before PostgreSQL drops settings of a session: statement_timeout',
    ]);
  });

  test('no database', async () => {
    const config = readConfig(environment, DECLARED);
    const told = await examine({
      config,
      database: databaseOf(config),
      sql: null,
      dkimSelector: null,
      names: NAMES,
      nowMs: Date.now,
    });
    assert(mended(told).includes('database: the embedded database does not run'));
  });

  test('a clock that is wrong', async () => {
    const config = readConfig(environment, DECLARED);
    const nowMs = () => Date.now() + 3_600_000;
    const told = mended(
      await examine({
        config,
        database: databaseOf(config),
        sql: database.sql,
        dkimSelector: null,
        names: NAMES,
        nowMs,
        withinMs: PATIENT_MS,
      }),
    );
    assert.equal(
      told.filter((each) => /^clock: this machine is 3\d{3} s ahead of the /.test(each)).length,
      2,
    );
  });

  test('a proxy that lets callers write their own address', async () => {
    const careless = await frontOf({});
    const forged =
      'proxy: callers choose their own address: one wrote another into x-forwarded-for and was believed';
    for (const tokens of [`desk:${TOKEN}`, '']) {
      const told = mended(await found({ PUBLIC_URL: careless.url, ADMIN_TOKENS: tokens }));
      assert(told.includes(forged), told.join('\n'));
      // The limits of the two addresses that were written are not whole any more: they are forgotten with the server.
      await reopen();
    }
    await careless.close();
  });

  test('a proxy that names no caller, and one that is not trusted', async () => {
    const nameless = await frontOf({ 'x-forwarded-for': '' });
    const byOther = await frontOf({ 'x-real-ip': '8.8.8.8' });
    const told = mended(await found({ PUBLIC_URL: nameless.url }));
    assert(
      told.includes(
        'proxy: a trusted proxy names no caller in x-forwarded-for: its own address stands for all',
      ),
      told.join('\n'),
    );
    await Promise.all([nameless.close(), byOther.close()]);
  });

  test('an address without TLS is not told the token of an operator', async () => {
    // It leads to this machine, and does not look so.
    const open = front.url.replace('127.0.0.1', '[::ffff:127.0.0.1]');
    const findings = await found({ PUBLIC_URL: open });
    const [proxy] = findings.filter(({ step }) => step === 'proxy');
    assert.equal(proxy?.verdict, 'note', proxy?.found);
    assert(mended(findings).some((line) => line.startsWith('tls: ')));
  });

  test('nobody at the public address', async () => {
    const gone = await listening(createServer(() => {}));
    const url = `http://127.0.0.1:${portOf(gone)}`;
    gone.close();
    await once(gone, 'close');
    assert(mended(await found({ PUBLIC_URL: url })).includes(`server: nobody answers at ${url}`));
  });

  test('a card key that is not taken, and a webhook that is not there', async () => {
    const told = mended(await found({ CARD_PROVIDER_KEY: 'sk_test_of_somebody_else' }));
    assert(told.includes('cards: the provider answers 401 to the key'), told.join('\n'));
    const elsewhere = await frontOf({ 'x-forwarded-for': '8.8.8.8' });
    const other = mended(await found({ PUBLIC_URL: elsewhere.url }));
    await elsewhere.close();
    assert.deepEqual(other, [
      `cards: the provider has no webhook for ${elsewhere.url}/api/m2m/credits/webhook`,
    ]);
  });
});

describe('mail from a domain', () => {
  async function look(texts: Record<string, string[]>, dkimSelector: string | null) {
    const names: Names = { ...NAMES, textsOf: async (name) => texts[name] ?? [] };
    const looks = lookAtMail({
      smtpUrl: 'smtp://mail.example.com',
      from: 'a@example.com',
      dkimSelector,
      names,
    });
    // Without the first, which asks the mail server itself.
    const findings = await Promise.all(
      looks.slice(1).map((each) => each.look(AbortSignal.timeout(PATIENT_MS))),
    );
    return findings.flat().map(({ verdict }) => verdict);
  }
  const texts = {
    'example.com': ['something-else', 'v=spf1 include:mail.example.net -all'],
    '_dmarc.example.com': ['v=DMARC1; p=reject'],
    'one._domainkey.example.com': ['v=DKIM1; k=rsa; p=MIIB'],
  };

  test('needs SPF, DMARC and DKIM', async () => {
    assert.deepEqual(await look(texts, 'one'), ['fine', 'fine', 'fine']);
    assert.deepEqual(await look(texts, 'two'), ['fine', 'fine', 'mend']);
    assert.deepEqual(await look(texts, null), ['fine', 'fine', 'note']);
    assert.deepEqual(await look({}, 'one'), ['mend', 'mend', 'mend']);
    const revoked = { ...texts, 'one._domainkey.example.com': ['v=DKIM1; p='], 'example.com': ['v=spf10'] };
    assert.deepEqual(await look(revoked, 'one'), ['mend', 'fine', 'mend']);
  });
});

test('documents that are missing, and links that lead nowhere', async () => {
  const pages = await listening(
    createHttpServer(({ url }, answer) => answer.writeHead(url === '/there' ? 200 : 404).end()),
  );
  const at = (path: string) => ({ kind: 'url', url: `http://127.0.0.1:${portOf(pages)}${path}` }) as const;
  const look = async (needed: boolean) => {
    const legal = { terms: at('/there'), privacy: at('/gone'), refunds: null, imprint: null };
    const looks = lookAtDocuments({ legal, needed });
    return (await takeLooks(looks, { withinMs: PATIENT_MS, plain: String })).map(
      ({ verdict, found: told }) => `${verdict}: ${told}`,
    );
  };
  const links = ['fine: Terms is there', 'mend: PRIVACY leads to an answer of 404'];
  assert.deepEqual(await look(true), ['mend: buyers are not shown REFUNDS, IMPRINT', ...links]);
  assert.deepEqual(await look(false), ['note: buyers are not shown REFUNDS, IMPRINT', ...links]);
  pages.close();
});

test('a sign-in provider that is another, or away', async () => {
  let issuer = '';
  const provider = await listening(
    createHttpServer(({ url }, answer) => {
      if (url !== '/.well-known/openid-configuration') return answer.writeHead(404).end();
      return answer.end(JSON.stringify({ issuer, authorization_endpoint: `${issuer}/authorize` }));
    }),
  );
  const own = `http://127.0.0.1:${portOf(provider)}`;
  const look = async (asked: string | null, tokens: number) => {
    const told = await takeLooks([lookAtOperators({ issuer: asked, tokens })], {
      withinMs: PATIENT_MS,
      plain: () => 'it is away',
    });
    return told.map(({ verdict, found: words }) => `${verdict}: ${words}`)[0];
  };
  issuer = own;
  assert.match(String(await look(own, 0)), /^fine: /);
  assert.match(String(await look(own, 2)), /^note: .* 2 tokens are configured/);
  assert.equal(await look(`${own}/other`, 0), 'mend: the sign-in provider answers 404');
  issuer = 'https://somebody.example';
  assert.equal(await look(own, 0), 'mend: the sign-in provider names another issuer');
  provider.close();
  assert.match(String(await look(own, 0)), /^mend: it could not be looked at/);
  assert.match(String(await look(null, 0)), /^note: there is no operator’s page/);
});

test('a certificate that nobody else accepts', async () => {
  const { cert, key } = makeCertificate(new Date(Date.now() - 60_000));
  const own = await listening(createTlsServer({ cert, key }));
  const parts = { isPublic: true, proxyHeader: 'x-forwarded-for', hasProxies: true, operatorToken: null };
  const look = lookAtTls({
    ...parts,
    url: `https://127.0.0.1:${portOf(own)}`,
    names: NAMES,
    nowMs: Date.now,
  });
  const told = [await look.look(AbortSignal.timeout(PATIENT_MS))].flat();
  own.close();
  assert.match(mended(told)[0] ?? '', /^tls: the certificate is not accepted: /);
});

describe('the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-doctor-'));
  let embedded: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
  before(async () => {
    embedded = await startEmbeddedPostgres(folder);
    const own = connectDatabase(embedded.localUrl, 1);
    await migrate(own);
    await own.end();
  });
  after(async () => {
    await embedded?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function doctor(change: Record<string, string>, ...args: string[]) {
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', RUN, relative(ROOT, programOf('commands/doctor')), ...args],
      {
        env: {
          ...SURROUNDINGS,
          ...environment,
          DATABASE_URL: '',
          FAREBOX_DATA_DIR: folder,
          ...change,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { out, err, code };
  }

  test('exits with 0, and prints no secret', async () => {
    const { out, err, code } = await doctor({}, '--json');
    assert.deepEqual([err, code], ['', 0], out);
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    assert.equal(findings[0]?.step, 'configuration');
    assert(findings.some(({ step, verdict }) => step === 'database' && verdict === 'note'));
    const password = readFileSync(join(folder, 'postgres', 'password'), 'utf8').trim();
    for (const secret of [TOKEN, CARD_KEY, world.chain.accounts.relayer.privateKey, password, 'whsec_'])
      assert(!out.includes(secret));
  });

  test('exits with 1 when something is to be mended, and with 2 when it is called wrongly', async () => {
    const wrong = await doctor({ X402_RECIPIENT: '' });
    assert.equal(wrong.code, 1);
    assert.match(wrong.out, /^configuration MEND {2}X402_RECIPIENT: must be set to take payments on base$/m);
    assert.match(wrong.out, /^1 to be mended, in this order\.$/m);
    assert.equal((await doctor({}, '--dkim', 'a b')).code, 2);
  });
});

/** The trail of operators: what is written down of whom, and what shows of a log that somebody with the database has changed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { auditLines, verifyAudit } from '../../../../packages/core/src/operator/audit-chain.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { programOf } from '../programs.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';
import { runProgram } from './program.fixture.ts';

const TOKEN = 'an-operators-token-of-the-tests';
const COMMAND = programOf('commands/operators');

let database: TestDatabase;
let server: TestServer;
let folder: string;
let account: string;
before(async () => {
  database = await openTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'trail-'));
  server = await startTestServer({ pools: database, environment: { ADMIN_TOKENS: `desk:${TOKEN}` } });
  const known = await server.app.keys.find(await server.key('1'));
  account = String(known?.accountId);
});
after(async () => {
  await server.close();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

async function ask(path: string, body?: object, key: string = randomUUID()): Promise<Response> {
  return fetch(`${server.url}/admin/api/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'idempotency-key': key, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function rowsSince(number: number) {
  const rows = await database.sql<
    { number: bigint; kind: string; actor: string; address: string; role: string; about: string }[]
  >`
    select number, kind, actor, address, role, about from operator_trail where number > ${number} order by number`;
  return rows.map(({ number: _number, about, ...row }) => ({ ...row, about: JSON.parse(about) }));
}
const rows = async () => Number((await database.sql`select count(*) as n from operator_trail`)[0]?.n);

async function linesNow(): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of auditLines(database.patient)) lines.push(line);
  return lines;
}

const wrong = async () =>
  (await proveBooks(database.patient)).checks.flatMap(({ ok, name }) => (ok ? [] : [name]));
const TRAIL_RULE =
  'every row of the trail of operators stands as it was written, after the one that was before it';

/** Runs statements as the owner of the database, who switches triggers off. */
async function tamper(statements: string): Promise<void> {
  await database.sql.begin(async (transaction) => {
    await transaction`alter table operator_trail disable trigger user`;
    await transaction.unsafe(statements);
    await transaction`alter table operator_trail enable trigger user`;
  });
}

test('what is asked for is written down before it is done, and whose data is shown before the answer leaves', async () => {
  const start = await rows();
  const who = { actor: 'desk', address: '127.0.0.1', role: 'admin' };
  const key = randomUUID();
  assert.equal((await ask('session')).status, 200);
  assert.equal((await ask('overview')).status, 200);
  assert.equal((await ask(`accounts/${account}`)).status, 200);
  assert.equal((await ask('keys?q=somebody%40example.com')).status, 200);
  assert.equal((await ask('accounts/999999999')).status, 404);
  assert.equal(
    (await ask(`accounts/${account}/grant`, { reason: 'for the trail', amountUsd: '1' }, key)).status,
    200,
  );
  assert.equal((await ask('accounts/somebody@example.com/freeze', { reason: 'for the trail' })).status, 400);
  const written = await rowsSince(start);
  const [act] = await database.sql<{ digest: string }[]>`
    select encode(idempotency_digest, 'hex') as digest from operator_acts order by number desc limit 1`;
  assert.deepEqual(
    written.map(({ kind, about: { keySha256: _key, ...about }, ...row }) => [row, kind, about]),
    [
      [who, 'sign_in', { token: true }],
      [who, 'shown', { route: 'GET /accounts/:account', accounts: [account], calls: [] }],
      [who, 'shown', { route: 'GET /keys', accounts: [], calls: [] }],
      [who, 'asked', { route: 'POST /accounts/:account/grant', of: { account } }],
      [who, 'asked', { route: 'POST /accounts/:account/freeze', of: { account: 'unfit' } }],
    ],
  );
  assert.equal(written[3]?.about.keySha256, act?.digest, 'the act has the same digest of its key');
  assert(
    !JSON.stringify(written).includes('somebody'),
    'no data of a customer stays in what cannot be removed',
  );
});

test('what cannot be written down is neither shown nor done', async () => {
  await database.sql`alter table operator_trail rename to operator_trail_away`;
  try {
    const refused = await ask(`accounts/${account}`);
    assert.equal(refused.status, 500);
    assert(!(await refused.text()).includes('keyPrefix'));
    const before = await database.sql`select count(*) from operator_acts`;
    assert.equal(
      (await ask(`accounts/${account}/grant`, { reason: 'for the trail', amountUsd: '1' })).status,
      500,
    );
    assert.equal((await ask('audit.jsonl')).status, 500);
    assert.deepEqual(await database.sql`select count(*) from operator_acts`, before);
  } finally {
    await database.sql`alter table operator_trail_away rename to operator_trail`;
  }
});

test('no statement changes or removes a row', async () => {
  for (const statement of [
    'update operator_trail set actor = actor',
    'delete from operator_trail',
    'truncate operator_trail',
  ])
    await assert.rejects(database.sql.unsafe(statement), /only ever added to/, statement);
});

test('many at once take turns, without gaps', async () => {
  const start = await rows();
  await Promise.all(Array.from({ length: 20 }, () => ask('session')));
  assert.equal(await rows(), start + 20);
  assert.deepEqual(await wrong(), []);
});

/** How somebody who has the database may change the trail, each with what a reader of the export finds. */
const CHANGES: [name: string, statements: string, finding: RegExp][] = [
  [
    'a row that is edited',
    `update operator_trail set address = '9.9.9.9' where number = 3`,
    /row 3 .* was changed/,
  ],
  [
    'an actor that is edited in the last row',
    "update operator_trail set actor = 'x' where number = (select max(number) from operator_trail)",
    /was changed/,
  ],
  ['a row that is removed', 'delete from operator_trail where number = 4', /follows row 3/],
  ['the first row that is removed', 'delete from operator_trail where number = 1', /follows row 0/],
  [
    'two rows that changed places',
    'update operator_trail set number = -number where number in (3, 4); update operator_trail set number = 7 + number where number < 0',
    /row 3 .* was changed/,
  ],
];
for (const [name, statements, finding] of CHANGES) {
  test(`${name} shows in the books and in the export, and no later row hides it`, async () => {
    await database.sql.unsafe(
      'create table kept as table operator_trail; create table kept_head as table operator_trail_head',
    );
    await tamper(statements);
    try {
      for (let more = 0; more < 2; more += 1) {
        assert((await wrong()).includes(TRAIL_RULE));
        assert.match((await verifyAudit(await linesNow())).finding ?? '', finding);
        await ask('session');
      }
    } finally {
      await tamper(`
        delete from operator_trail; delete from operator_trail_head;
        insert into operator_trail select * from kept; insert into operator_trail_head select * from kept_head;
        drop table kept, kept_head`);
    }
    assert.deepEqual(await wrong(), []);
  });
}

test('rows cut off at the end show in the books; with the last digest rewritten too, beside an earlier export alone', async () => {
  const before = await verifyAudit(await linesNow());
  assert.equal(before.finding, null);
  await database.sql.unsafe(
    'create table kept as table operator_trail; create table kept_head as table operator_trail_head',
  );
  await tamper('delete from operator_trail where number > 5');
  assert((await wrong()).includes(TRAIL_RULE));
  await tamper(
    'update operator_trail_head h set number = t.number, digest = t.digest from operator_trail t where t.number = 5',
  );
  assert.deepEqual(await wrong(), [], 'whoever rewrites all of it agrees with themselves');
  const lines = await linesNow();
  assert.equal((await verifyAudit(lines)).finding, null);
  assert.match((await verifyAudit(lines, before.ends)).finding ?? '', /trail ends before the row/);
  await tamper(`
    delete from operator_trail; delete from operator_trail_head;
    insert into operator_trail select * from kept; insert into operator_trail_head select * from kept_head;
    drop table kept, kept_head`);
  assert.equal((await verifyAudit(await linesNow(), before.ends)).finding, null);
});

test('the export is lines that a command proves, and finds what was done to them', async () => {
  const answer = await ask('audit.jsonl');
  assert.deepEqual(
    [answer.status, answer.headers.get('content-type'), answer.headers.get('content-disposition')],
    [200, 'application/jsonl; charset=utf-8', 'attachment; filename="audit.jsonl"'],
  );
  const text = await answer.text();
  const lines = text.trimEnd().split('\n');
  const file = join(folder, 'audit.jsonl');
  const proved = async (changed: string[]) => {
    await writeFile(file, `${changed.join('\n')}\n`);
    return runProgram(COMMAND, ['verify', file]);
  };
  assert.deepEqual(await proved(lines), {
    code: 0,
    out: `acts: 1 rows, trail: ${lines.length - 3} rows\nThe logs are whole.\n`,
  });
  const faults: [string[], RegExp][] = [
    [lines.slice(0, -1), /trail is cut off/],
    [lines.slice(0, -3), /trail is cut off/],
    [lines.toSpliced(3, 1), /a row is missing/],
    [[...lines.slice(0, 3), lines[4] ?? '', lines[3] ?? '', ...lines.slice(5)], /a row is missing/],
    [
      lines.map((line, index) => (index === 3 ? line.replace('127.0.0.1', '127.0.0.2') : line)),
      /was changed/,
    ],
    [
      lines.map((line, index) => (index === 0 ? line.replace('for the trail', 'for nothing') : line)),
      /log acts, was changed/,
    ],
    [[...lines, lines[2] ?? ''], /behind the end/],
    [[...lines.slice(0, 3), 'x', ...lines.slice(3)], /is no line/],
  ];
  for (const [changed, finding] of faults) assert.match((await verifyAudit(changed)).finding ?? '', finding);
  const { code, out } = await proved(lines.slice(0, -3));
  assert.deepEqual(
    [code, out],
    [1, `${file}: the log trail is cut off: its end is missing\nThe logs are NOT whole.\n`],
  );
  const later = join(folder, 'later.jsonl');
  await writeFile(later, text);
  await writeFile(file, `${lines.slice(0, -3).join('\n')}\n${cutEnd(lines.at(-4) ?? '')}\n`);
  assert.equal(
    (await runProgram(COMMAND, ['verify', later, '--since', file])).code,
    0,
    'the later goes on from the earlier',
  );
  const backwards = await runProgram(COMMAND, ['verify', file, '--since', later]);
  assert.match(backwards.out, /trail ends before the row that the earlier export ended with/);
});

/** The end of a log whose last row is this one. */
function cutEnd(lastRow: string): string {
  const { chain, number, sha256 } = JSON.parse(lastRow);
  return JSON.stringify({ chain, end: true, number, sha256 });
}

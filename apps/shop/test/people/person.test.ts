/**
 * The data that the database holds about a person, exported and erased: a person whose name stands wherever a customer can put it is gone from
 * every column afterwards, nobody else's rows are touched, and the books prove.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { peopleOf } from '../../../../packages/core/src/declared.ts';
import { createTrail } from '../../../../packages/core/src/operator/trail.ts';
import { type ErasureParts, erase, reapply } from '../../../../packages/core/src/people/erasure.ts';
import { erasureListAt } from '../../../../packages/core/src/people/erasure-list.ts';
import { findPerson, isKnown } from '../../../../packages/core/src/people/person.ts';
import { secretsOf } from '../../../../packages/core/src/secrets/secrets.ts';
import { type Mailbox, startMailbox } from '../../../../packages/sandbox/src/mailbox/mailbox.ts';
import { DECLARED } from '../../src/app.ts';
import { type CardWorld, startCardWorld } from '../cards.fixture.ts';
import { programOf } from '../programs.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { SURROUNDINGS } from '../surroundings.fixture.ts';
import { type Customer, customer, operate, rowsWith, TOKEN, whereStands } from './people.fixture.ts';

const COMMAND = programOf('commands/person');
const SECRET = 'the secret of the tests of persons and erasures';
const CREDITS = '/api/m2m/credits';

let world: CardWorld;
let mailbox: Mailbox;
let folder: string;
before(async () => {
  mailbox = await startMailbox({ stateDir: null });
  folder = await mkdtemp(join(tmpdir(), 'person-'));
  world = await startCardWorld({
    environment: {
      FAREBOX_SECRET: SECRET,
      SMTP_URL: mailbox.smtpUrl,
      MAIL_FROM: 'credits@farebox.test',
      ADMIN_TOKENS: `desk:${TOKEN}`,
      WALLET_ENCRYPTION_KEY: randomBytes(32).toString('hex'),
      WEBHOOK_PRIVATE_ADDRESSES: 'true',
    },
  });
});
after(async () => {
  await world?.stop();
  await mailbox?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs `npm run person` as a process of its own. */
function person(args: readonly string[], environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', COMMAND, ...args], {
    env: {
      ...SURROUNDINGS,
      DATABASE_URL: world.database.url,
      FAREBOX_SECRET: SECRET,
      FAREBOX_DATA_DIR: folder,
      BACKUPS_KEPT_DAYS: '30',
      CARD_PROVIDER_URL: String(world.environment.CARD_PROVIDER_URL),
      CARD_PROVIDER_KEY: String(world.environment.CARD_PROVIDER_KEY),
      CARD_WEBHOOK_SECRET: String(world.environment.CARD_WEBHOOK_SECRET),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk));
  return once(child, 'close').then(([code]) => ({ code: code as number | null, out }));
}

const DECIDED = ['credit', 'wallets'];
const tables = peopleOf(DECLARED).flatMap((part) => part.tables);

/** The parts that an erasure works with, in this process. */
function partsOf(list = erasureListAt(join(folder, 'erasures.jsonl'))): ErasureParts {
  const { app } = world.server;
  const { patient: sql } = world.database;
  return {
    sql,
    people: peopleOf(DECLARED),
    secrets: secretsOf([SECRET]),
    trail: createTrail(sql, Date.now),
    list,
    forgetCustomer: async (customer) => app.cards?.provider.forgetCustomer(customer),
    nowMs: Date.now,
  };
}

const customersAt = async (email: string): Promise<number> => {
  const reply = await fetch(`${world.provider.url}/v1/customers?email=${encodeURIComponent(email)}`, {
    headers: { authorization: `Bearer ${world.environment.CARD_PROVIDER_KEY}` },
  });
  return (await jsonOf(reply)).data.length;
};

let zora: Customer;
let other: Customer;

test('an export gives all that the database holds, to a file that only its owner reads', async () => {
  zora = await customer(world, 'zoramarker', 'zoramarker@example.com');
  // An address that ends as hers does, and one whose domain begins so.
  other = await customer(
    world,
    'annalise',
    'annalise.zoramarker@example.com'.replace('.zoramarker', '-zora'),
  );
  const columns = await whereStands(world.database, 'zoramarker');
  assert(columns.length >= 15, `her name stands in ${columns.join(', ')}`);
  const out = join(folder, 'person.json');
  const done = await person(['export', 'ZoraMarker@Example.com', '--by', 'desk', '--out', out]);
  assert.deepEqual([done.code, /only its owner can read/.test(done.out)], [0, true], done.out);
  assert.equal((await stat(out)).mode & 0o777, 0o600);
  const told = JSON.parse(await readFile(out, 'utf8'));
  assert.deepEqual(
    [told.person, told.accounts, told.sharedAccounts],
    ['zoramarker@example.com', [zora.accountId], []],
  );
  const held = new Map<string, object[]>(
    told.data.map(({ table, rows }: { table: string; rows: object[] }) => [table, rows]),
  );
  for (const column of columns) {
    const [table = ''] = column.split('.');
    if (table.startsWith('operator_')) continue;
    assert(
      JSON.stringify(held.get(table) ?? '')
        .toLowerCase()
        .includes('zoramarker'),
      `${column} is missing in the export`,
    );
  }
  assert.match(JSON.stringify(held.get('card_orders')), /"card_brand":"visa","card_last4":"4242"/);
  assert(!JSON.stringify(told).includes('annalise'), 'nobody else stands in it');
  assert.equal(JSON.stringify(told).match(/sealed_secret|token_digest|ciphertext|secret_digest/), null);
  // It is written once, and never over a file that is there.
  const again = await person(['export', zora.email, '--by', 'desk', '--out', out]);
  assert.deepEqual([again.code, /is there already/.test(again.out)], [2, true]);
  const nobody = await findPerson(
    world.database.patient,
    peopleOf(DECLARED),
    'marker@example.com',
    Date.now(),
  );
  assert.equal(await isKnown(world.database.patient, tables, nobody, Date.now()), false);
});

test('what stands in the way is said, and nothing is changed', async () => {
  const before = await rowsWith(world.database, ['zoramarker']);
  const refusal = async (despite: readonly string[]) => {
    const told = await erase(partsOf(), zora.email, { by: 'desk', despite });
    assert.equal(told.status, 'refused');
    return 'obstacles' in told ? told.obstacles.join('\n') : '';
  };
  const refused = await refusal([]);
  assert.match(refused, /USD of credit left.*--despite credit/);
  assert.match(refused, /keeps the keys of the wallet.*--despite wallets/);
  const { sql } = world.database;
  const opened = await jsonOf(
    world.post(`${CREDITS}/checkout/session`, { amountUsd: 10, email: zora.email }),
  );
  assert.match(await refusal(DECIDED), /^The card order [0-9a-f-]+ may still be paid: wait.*$/);
  await sql`delete from card_orders where session_id = ${opened.sessionId}`;
  for (const [begin, end, words] of [
    [
      sql`update card_orders set disputed_micros = 1, reversed_micros = 1, dispute = 'needs_response' where id = ${zora.orderId}`,
      sql`update card_orders set disputed_micros = 0, reversed_micros = 0, dispute = null where id = ${zora.orderId}`,
      /^The payment of the card order .* is in dispute: wait.*$/,
    ],
    [
      sql`insert into account_debts (account_id, owed_micros, since) values (${zora.accountId}, 5, now())`,
      sql`delete from account_debts where account_id = ${zora.accountId}`,
      /^Account \d+ owes 0.000005 USD.* --despite debt\.$/,
    ],
    [
      sql`insert into operator_proposals (id, at, actor, act, account_id, order_id, amount_micros, reason, idempotency_digest, request_digest)
          values (gen_random_uuid(), now(), 'desk', 'refund_order', ${zora.accountId}, ${zora.orderId}, 1, 'a drill', '', '')`,
      sql`delete from operator_proposals`,
      /^A second operator has yet to decide.*$/,
    ],
  ] as const) {
    await begin;
    assert.match(await refusal(DECIDED), words);
    await end;
  }
  assert.deepEqual(await rowsWith(world.database, ['zoramarker']), before);
  assert.deepEqual([...(await sql`select 1 from erasures`)], []);
});

test('an erasure leaves the name in no column, other people as they were, and books that prove', async () => {
  const words = [other.marker, other.email, other.key.slice(0, 12), `"account_id": ${other.accountId}[,}]`];
  const before = await rowsWith(world.database, words);
  assert(before.length > 20);
  const sums = await world.database.sql`select * from ledger_accounts order by id`;
  // Cut off where the provider is asked last.
  const cut = await person(
    ['erase', zora.email, '--by', 'desk', ...DECIDED.flatMap((word) => ['--despite', word])],
    {
      CARD_PROVIDER_URL: 'http://127.0.0.1:9',
    },
  );
  assert.deepEqual([cut.code, /card provider does not answer/.test(cut.out)], [2, true], cut.out);
  const done = await person(['erase', ` ${zora.email.toUpperCase()}`.trim(), '--by', 'desk']);
  assert.deepEqual([done.code, /which was cut off, has ended/.test(done.out)], [0, true], done.out);
  const until = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
  assert(done.out.includes(`still hold this person, until ${until}`), done.out);
  assert.deepEqual(await whereStands(world.database, 'zoramarker'), []);
  assert.deepEqual(await rowsWith(world.database, words), before);
  const cards = await world.database
    .sql`select card_brand, card_last4 from card_orders where id = ${zora.orderId}`;
  assert.deepEqual([...cards], [{ card_brand: null, card_last4: null }]);
  assert.deepEqual(await world.database.sql`select * from ledger_accounts order by id`, sums);
  await world.assertBooks();
  assert.deepEqual([await customersAt(zora.email), await customersAt(other.email)], [0, 1]);
  const [row] = await world.database.sql`select ended_at, customers from erasures`;
  assert.deepEqual([row?.ended_at instanceof Date, row?.customers], [true, []]);
  // The trail names nobody, and is whole.
  const trail = await world.database.sql<
    { about: string }[]
  >`select about from operator_trail where actor = 'npm run person' order by number`;
  assert.deepEqual(
    trail.map(({ about }) => JSON.parse(about)).map(({ command, by, ended = false }) => [command, by, ended]),
    [
      ['person export', 'desk', false],
      ['person erase', 'desk', false],
      ['person erase', 'desk', true],
    ],
  );
  assert.equal((await world.me(other.key)).email === undefined, true);
  assert.equal((await world.server.call('ping', other.key)).status, 200);
  assert.equal((await world.server.call('ping', zora.key)).status, 402, 'her key pays nothing any more');
});

test('nothing brings the name back: no job, no event, no link to a new key', async () => {
  const sent = await world.post(`${CREDITS}/checkout/mail-key`, { sessionId: zora.sessionId });
  assert.equal(sent.status, 409, await sent.clone().text());
  await world.control('POST', '/disputes', { orderId: zora.orderId }).catch(() => {});
  for (const { run } of world.server.app.jobs) await run();
  await world.settle();
  assert.deepEqual(await whereStands(world.database, 'zoramarker'), []);
  const again = await erase(partsOf(), zora.email, { by: 'desk', despite: [] });
  assert.equal(again.status, 'unknown');
  const acted = await operate(world, `accounts/${other.accountId}/freeze`, {
    reason: `asked for by ${other.email}`,
  });
  assert.equal(acted.status, 400, 'what can never be removed takes no address');
});

test('whoever is listed is erased again where a restored database knows them, and nobody else is', async () => {
  const { sql } = world.database;
  // As a backup from before the erasure has it, and the card provider: an order with the address, and no erasure.
  await sql`delete from erasures`;
  await sql`update card_orders set email = 'ZoraMarker@example.com', erased_at = null where id = ${zora.orderId}`;
  await sql`
    insert into mails (id, recipient, subject, body, created_at, sent_at)
    values (gen_random_uuid(), ${other.email}, 'moved', ${`from zoramarker@example.com to ${other.email}`}, now(), now())`;
  const elsewhere = await reapply(partsOf(erasureListAt(join(folder, 'none.jsonl'))), 'desk');
  assert.deepEqual(elsewhere, { erased: 0, obstacles: [], unreadable: 0, listed: 0 });
  const list = join(folder, 'erasures.jsonl');
  assert.equal((await readFile(list, 'utf8')).match(/zora|example/i), null);
  // A line that was cut off while it was written is no line.
  await appendFile(list, '{"id":"');
  const again = await reapply(partsOf(), 'desk');
  assert.deepEqual([again.erased, again.obstacles, again.unreadable], [1, [], 0]);
  assert.deepEqual(await whereStands(world.database, 'zoramarker'), []);
  const [mail] = await sql<{ body: string }[]>`select body from mails where subject = 'moved'`;
  assert.equal(mail?.body, `from [erased] to ${other.email}`);
  assert.equal((await reapply(partsOf(), 'desk')).erased, 0);
  const other2 = { ...partsOf(), secrets: secretsOf(['another secret of the tests of persons and so on']) };
  assert.equal((await reapply(other2, 'desk')).unreadable, 1);
  await world.assertBooks();
});

test('an erasure that is cut off after each change in turn goes on, though what led to the account went first', async () => {
  const { patient } = world.database;
  const yvonne = await customer(world, 'yvonnemarker', 'yvonnemarker@example.com');
  const cut = new Error('cut off');
  const sql = new Proxy(patient, {
    get(target, name) {
      if (name !== 'unsafe') return Reflect.get(target, name);
      return async (text: string, values: string[]) => {
        const found = await target.unsafe(text, values);
        if (/^\s*(update|delete)/.test(text) && found.count > 0) throw cut;
        return found;
      };
    },
  });
  let cuts = 0;
  for (let ended = false; !ended; ) {
    const erasing = erase({ ...partsOf(), sql }, yvonne.email, { by: 'desk', despite: DECIDED });
    const done = await erasing.catch((error: unknown) => {
      if (error !== cut || cuts > 200) throw error;
      return null;
    });
    if (done === null) cuts += 1;
    else assert.deepEqual([done.status, done.status === 'erased' && done.resumed], ['erased', true]);
    ended = done !== null;
  }
  assert(cuts > 10, `${cuts} changes`);
  assert.deepEqual(await whereStands(world.database, 'yvonnemarker'), []);
  await world.assertBooks();
});

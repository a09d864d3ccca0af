/**
 * (r) messages of a webhook to a receiver that answers at once, each stored before it is sent and noted after, against the
 * same signed POSTs of messages that are stored nowhere.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { Agent, request } from 'undici';
import { connectPools, endPools, type Pools } from '../packages/core/src/db/connection.ts';
import { migrate } from '../packages/core/src/db/migrate.ts';
import { createKeys } from '../packages/core/src/keys/keys.ts';
import { grantKey } from '../packages/core/src/keys/trial.ts';
import { createLedger } from '../packages/core/src/ledger/ledger.ts';
import { createAnswerSeal } from '../packages/core/src/paid-call/sealed-answer.ts';
import { secretsOf } from '../packages/core/src/secrets/secrets.ts';
import { createOutbox, type Outbox } from '../packages/core/src/webhooks/outbox.ts';
import { createSender } from '../packages/core/src/webhooks/send.ts';
import { createWebhooks } from '../packages/core/src/webhooks/webhooks.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { order, startProgram } from './answering-process.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

/** Of one webhook. As many may wait for it. */
const MESSAGES = 1_000;
/** As many at once as a receiver without failures gets. */
const AT_ONCE = 8;
const MESSAGES_PER_SECOND_AT_LEAST = 100;
const CONNECTIONS = 8;

export async function measureWebhooks(
  resources: Resources,
  { rounds }: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const embedded = await startEmbeddedPostgres(resources.folder());
  resources.defer(() => embedded.stop());
  const pools = connectPools(embedded.url, CONNECTIONS);
  resources.defer(() => endPools(pools, 5));
  await migrate(pools.patient);
  const receiver = await startProgram<{ port: number }>(
    resources,
    join(import.meta.dirname, 'webhooks-receiver-program.ts'),
    { environment: process.env },
  );
  const url = `http://127.0.0.1:${receiver.first.port}/`;
  const { accountId, secret, outbox } = await webhookTo(resources, pools, url);
  const taken = () => order<object, number>(receiver.child, {});
  const perSecond = async (send: () => Promise<void>): Promise<number> => {
    const [before, startedAtMs] = [await taken(), performance.now()];
    await send();
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const arrived = (await taken()) - before;
    if (arrived !== MESSAGES) throw new Error(`(r) ${arrived} of ${MESSAGES} messages arrived`);
    return MESSAGES / seconds;
  };
  const ours = async () => {
    await storeMessages(pools, accountId);
    const rate = await perSecond(() => sendAll(outbox));
    await pools.sql`truncate webhook_deliveries, account_events`;
    return rate;
  };
  const agent = new Agent();
  resources.defer(() => agent.close());
  const theirs = () => perSecond(() => postAll(agent, url, secret));
  await ours();
  await theirs();
  const found = await alternate(rounds, ours, theirs);
  const compared = compare(found.ours, found.opponent);
  const isMet = compared.ours >= MESSAGES_PER_SECOND_AT_LEAST;
  return {
    lines: [
      {
        part: 'r',
        measured: `${MESSAGES} messages to one receiver`,
        unit: 'messages/s',
        goal: null,
        ...compared,
      },
    ],
    notes: [
      `(r) a webhook sends ${Math.round(compared.ours)} messages a second to a quick receiver (goal: at least ${MESSAGES_PER_SECOND_AT_LEAST}, ${isMet ? 'met' : 'not met'})`,
    ],
  };
}

/** A webhook of a new account, and what sends its messages as the server does. */
async function webhookTo(resources: Resources, pools: Pools, url: string) {
  const { sql } = pools;
  const secrets = secretsOf([randomUUID() + randomUUID()]);
  const seal = createAnswerSeal(secrets);
  const keys = createKeys(sql, Date.now);
  const parts = { sql, keys, ledger: createLedger(pools, Date.now), nowMs: Date.now };
  const { apiKey } = await grantKey(parts, { amountMicros: 1_000_000n, label: 'bench', note: 'bench' });
  const known = await keys.find(apiKey);
  if (known === null) throw new Error('the key is not there');
  const { accountId } = known;
  const webhooks = createWebhooks(sql, { seal, currentId: secrets.current.id, nowMs: Date.now });
  const made = await webhooks.create(accountId, {
    url,
    events: ['refund.made'],
    lowBelowMicros: null,
    email: null,
  });
  if (made === null) throw new Error('the webhook was refused');
  const sender = createSender({ allowPrivate: true, userAgent: 'bench' });
  const outbox = createOutbox(sql, {
    sender,
    seal,
    baseUrl: 'http://127.0.0.1',
    retentionDays: 30,
    nowMs: Date.now,
    mailer: { enqueue: async () => {} },
    report({ outcome, result }) {
      if (outcome !== 'taken') throw new Error(`(r) a message was ${outcome}: ${result}`);
    },
  });
  resources.defer(async () => {
    await outbox.close();
    await sender.close();
  });
  return { accountId, secret: made.secret, outbox };
}

/** Events about money, of which a trigger writes a message each. */
async function storeMessages({ sql }: Pools, accountId: bigint): Promise<void> {
  await sql`
    insert into account_events (account_id, type, data, about_money, created_at)
    select ${String(accountId)}, 'refund.made', jsonb_build_object('nth', n), true, clock_timestamp()
    from generate_series(1, ${MESSAGES}) n`;
}

async function sendAll(outbox: Outbox): Promise<void> {
  while ((await outbox.send()) > 0) await outbox.idle();
}

/** The opponent: the library of Standard Webhooks signs, undici posts, and nothing is kept. */
async function postAll(agent: Agent, url: string, secret: string): Promise<void> {
  const signing = new Webhook(secret);
  let left = MESSAGES;
  const post = async () => {
    while (left > 0) {
      left -= 1;
      const [id, at] = [randomUUID(), new Date()];
      const body = JSON.stringify({ type: 'refund.made', timestamp: at.toISOString(), data: { nth: left } });
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': signing.sign(id, at, body),
      };
      const reply = await request(url, { method: 'POST', dispatcher: agent, headers, body });
      await reply.body.dump();
      if (reply.statusCode !== 204) throw new Error(`(r) the receiver answered ${reply.statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, post));
}

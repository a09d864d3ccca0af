import type { PersonalData } from '../words/personal-data.ts';

const OF_ACCOUNT = 'account_id = any(:accounts)';

export const CALL_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: null,
      sql: `select id from calls where ${OF_ACCOUNT} and state in (0, 3)`,
      say: ({ id }) => `The call ${id} has not ended: wait a minute.`,
    },
    {
      despite: null,
      sql: `select call_id from undelivered_calls where ${OF_ACCOUNT}`,
      say: ({ call_id: id }) => `The call ${id} was not delivered, and its price is about to go back: wait.`,
    },
  ],
  tables: [
    {
      table: 'call_answers',
      what: 'Answers of calls, sealed where they hold a secret',
      why: 'The same payment gets the same answer again',
      kept: '`ANSWER_TTL_HOURS`',
      columns: ['headers', 'body'],
      whose: OF_ACCOUNT,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'followed_calls',
      what: 'How a client over MCP names itself and its request',
      why: 'Its answer can be asked for again when the connection broke',
      kept: 'ten minutes',
      columns: ['client', 'request_id', 'fingerprint'],
      whose: OF_ACCOUNT,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'paid_requests',
      what: 'Which request paid for which call, and why one was refused',
      why: 'Support finds a call by the id of its request',
      kept: '`REQUEST_RETENTION_DAYS`',
      columns: ['request_id', 'reason'],
      whose: `call_id in (select id from calls where ${OF_ACCOUNT})`,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'call_identities',
      what: 'The idempotency key of a call',
      why: 'The same key buys once',
      kept: 'as long as the call',
      columns: ['identity'],
      whose: OF_ACCOUNT,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'calls',
      what: 'Which service was called, when and for how much; the idempotency key, and SHA-256 of what was asked',
      why: 'The books hold each price against its call',
      kept: 'for good',
      columns: ['identity', 'payment_key', 'fingerprint'],
      whose: OF_ACCOUNT,
      erasure: {
        set: { identity: 'null', fingerprint: 'null' },
        words: 'service, time and price stay; the idempotency key and the digest go',
      },
    },
  ],
};

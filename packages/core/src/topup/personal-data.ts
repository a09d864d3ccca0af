import type { PersonalData } from '../words/personal-data.ts';

const PAID_FOR_THEM = `call_id in (select call_id from topups where account_id = any(:accounts))`;
const ON_CHAIN = { stays: 'the books are compared with the chain by it, where it is public for good' };

export const TOPUP_PEOPLE: PersonalData = {
  obstacles: [
    {
      despite: null,
      sql: 'select call_id from topups where account_id = any(:accounts) and granted_at is null',
      say: ({ call_id: id }) => `The top-up of the call ${id} is not granted yet: wait a minute.`,
    },
    {
      despite: null,
      sql: `select call_id from settlements where state in (0, 3) and ${PAID_FOR_THEM}`,
      say: ({ call_id: id }) => `The chain has not decided about the payment of the call ${id}: wait.`,
    },
    {
      despite: null,
      sql: `select call_id from refunds where state = 0 and ${PAID_FOR_THEM}`,
      say: ({ call_id: id }) => `The payment of the call ${id} is about to be sent back: wait.`,
    },
  ],
  tables: [
    {
      table: 'topups',
      what: 'Credit that was bought on a chain',
      why: 'The books hold it against its payment',
      kept: 'for good',
      columns: ['key_digest', 'key_prefix'],
      whose: 'account_id = any(:accounts)',
      erasure: { stays: 'it names nobody' },
      withheld: ['key_lookup', 'key_digest'],
    },
    {
      table: 'settlements',
      what: 'A payment on a chain: wallets, transaction and what was signed',
      why: 'It is settled once, and the books are compared with the chain',
      kept: 'for good',
      columns: ['payer', 'evidence', 'transaction', 'pay_to'],
      whose: PAID_FOR_THEM,
      erasure: ON_CHAIN,
    },
    {
      table: 'refunds',
      what: 'What is sent back to a wallet',
      why: 'It is sent once',
      kept: 'for good',
      columns: ['payee', 'transaction'],
      whose: PAID_FOR_THEM,
      erasure: ON_CHAIN,
    },
  ],
};

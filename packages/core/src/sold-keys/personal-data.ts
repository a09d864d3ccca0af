import type { PersonalData } from '../words/personal-data.ts';

export const SOLD_KEY_PEOPLE: PersonalData = {
  bought: ['select account_id from sold_keys where payer_account = any(:accounts)'],
  obstacles: [
    {
      despite: null,
      sql: 'select call_id from sold_keys where payer_account = any(:accounts) and granted_at is null and refunded_at is null',
      say: ({ call_id: id }) => `The key that the call ${id} bought is not granted yet: wait a minute.`,
    },
  ],
  tables: [
    {
      table: 'sold_keys',
      what: 'A key that was bought by a call: its name and prefix',
      why: 'The books hold its credit against its price',
      kept: 'for good',
      columns: ['label', 'sealed_key', 'key_digest', 'key_prefix'],
      whose: 'payer_account = any(:accounts)',
      erasure: { set: { label: 'null' }, words: 'its name goes' },
      withheld: ['sealed_key', 'key_lookup', 'key_digest'],
    },
  ],
};

import type { PersonalData } from '../words/personal-data.ts';

const OWN_WEBHOOKS = 'select id from webhooks where account_id = any(:accounts)';

export const WEBHOOK_PEOPLE: PersonalData = {
  known: ['select account_id, email from webhooks'],
  tables: [
    {
      table: 'key_addresses',
      what: 'HMAC of each address that used a key',
      why: 'The owner is told when a key is used from a new address',
      kept: '`KEY_ADDRESS_RETENTION_DAYS` after its last use',
      columns: ['digest'],
      whose: 'key_id in (select id from api_keys where account_id = any(:accounts))',
      erasure: { rows: 'deleted' },
      withheld: ['digest'],
    },
    {
      table: 'account_events',
      what: 'What happened to an account, such as a payment, a low balance, or a key that was used from a new address, with that address',
      why: 'Webhooks and their owners read it later',
      kept: '`WEBHOOK_RETENTION_DAYS`',
      columns: ['data'],
      whose: 'account_id = any(:accounts)',
      erasure: { rows: 'deleted' },
    },
    {
      table: 'webhook_deliveries',
      what: 'Text of messages to webhooks, and what the receiver answered',
      why: 'They are sent again until they arrive',
      kept: '`WEBHOOK_RETENTION_DAYS`',
      columns: ['body', 'last_result'],
      whose: `webhook_id in (${OWN_WEBHOOKS})`,
      erasure: { rows: 'deleted' },
    },
    {
      table: 'webhooks',
      what: 'Address of a webhook, who is told when it fails, and its sealed secret',
      why: 'Its owner asked to be told',
      kept: 'until its owner deletes it, or the account has no key',
      columns: ['url', 'email', 'sealed_secret', 'sealed_secret_before', 'former_secrets'],
      whose: 'account_id = any(:accounts)',
      erasure: { rows: 'deleted' },
      withheld: ['sealed_secret', 'sealed_secret_before', 'former_secrets'],
    },
    {
      table: 'webhooks',
      what: 'The address that is told when a webhook of somebody else’s account fails',
      why: 'Its owner named it',
      kept: 'until its owner changes it',
      columns: ['email'],
      whose: 'lower(email) = :email and account_id <> all(:accounts)',
      erasure: { set: { email: 'null' }, words: 'the address goes' },
      withheld: ['url', 'sealed_secret', 'sealed_secret_before', 'former_secrets'],
    },
  ],
};

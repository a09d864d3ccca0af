import { declare, flag, whole } from '../declared.ts';
import { WEBHOOK_PEOPLE } from './personal-data.ts';

export const WEBHOOKS = declare({
  name: 'webhooks',
  people: WEBHOOK_PEOPLE,
  variables: {
    retentionDays: {
      name: 'WEBHOOK_RETENTION_DAYS',
      describe: 'How many days messages to webhooks, and events of accounts, are kept',
      shape: whole(7, 3_650),
      fallback: '30',
    },
    addressRetentionDays: {
      name: 'KEY_ADDRESS_RETENTION_DAYS',
      describe:
        'How many days after its last use the HMAC of an address that used a key is kept, for owners who are told of new addresses',
      shape: whole(7, 3_650),
      fallback: '90',
    },
    privateAddresses: {
      name: 'WEBHOOK_PRIVATE_ADDRESSES',
      describe:
        'Whether webhooks of key owners may lead to private addresses, and go without TLS. Set it only if every owner may reach whatever this server can reach',
      shape: flag,
      fallback: 'false',
    },
  },
});
